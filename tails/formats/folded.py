"""Records that a console folded at its width, put together again: rich's log column, or a line that ends in ``lr:``."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.error_lines import tells_error
from trainmon.tails.formats.bar import is_like_a_bar
from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.numbers import NUMBER

# rich's last column: where in the code it was said. Only the first line of a message has it.
_CALLER = re.compile(r"\s{2,}[\w./-]{1,40}\.py:\d{1,6}\s*$")
_DANGLING = re.compile(
    r"(?:[A-Za-z_)\]%][:=]|[\w)%] ?[|,]|[ (](?:\w{0,20}(?:loss|norm|lr|ppl)|learning rate|tok/s|mfu))\s*$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(rf"\s*(?:(?:{NUMBER})|[A-Za-z_∇][\w ./%()-]{{0,40}}?\s*[:=]\s*[-+.\dnNi]|[|,])")
_STEP_WORD = re.compile(
    r"(?<![A-Za-z])(?:global[ _]?)?(?:step|iter|epoch|update|batch)(?![ _-]?(?:time|size|s/|/))", re.I
)
# What the end of a line that either expression finds must be, in lower case.
_ENDS = (*(b":", b"=", b"|", b","), *(b"loss", b"norm", b"lr", b"ppl", b"learning rate", b"tok/s", b"mfu"))
_BLANKS = b" \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f"
_SEPARATOR = 3  # characters of what may stand before the rest of a record
_MOST_LINES = 8
_MOST_CHARACTERS = 4000
_TRIES = 32  # lines that could go on and never did; so many are enough to tell that they are whole
_FEWEST_BLANKS = 4


def may_dangle(low: bytes) -> bool:
    """Whether the end of an ASCII line, in lower case, could be one at which a console folds.

    >>> may_dangle(b"step 3 loss: 2.5 lr: "), may_dangle(b"saved  train.py:88"), may_dangle(b"step 3 loss: 2.5")
    (True, True, False)
    """
    tail = low[-64:].rstrip(_BLANKS)
    return tail.endswith(_ENDS) or (tail[-1:].isdigit() and b".py:" in tail)


class Folds:
    """Holds a line that may go on below, as long as lines come that go on.

    >>> folds = Folds()
    >>> head, rest = Line("step 3 | loss: 2.5 | lr:", 0, 1), Line("1.0e-04 | tok/s: 9", 25, 2)
    >>> [line.text for line in (*folds.take(head), *folds.take(rest), *folds.flush())]
    ['step 3 | loss: 2.5 | lr: 1.0e-04 | tok/s: 9']
    """

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._column = -1  # where the text of a folded message of rich stands; -1: the line is no such
        self._fruitless = {True: 0, False: 0}  # lines in vain held, of rich and others

    @property
    def is_open(self) -> bool:
        """Whether a line is held."""
        return bool(self._lines)

    def take(self, line: Line) -> list[Line]:
        """The lines that are whole now."""
        if self._lines and self._goes_on(line):
            self._lines.append(line)
            return []
        done = self.flush()
        if self._may_go_on(line):
            self._lines = [line]
            return done
        return [*done, line]

    def flush(self) -> list[Line]:
        """What is held, as one line."""
        held, self._lines = self._lines, []
        if not held:
            return []
        kind = self._column >= 0
        self._fruitless[kind] = self._fruitless[kind] + 1 if len(held) == 1 else 0
        if len(held) == 1:
            return held
        text = " ".join([_CALLER.sub("", held[0].text), *(line.text.strip() for line in held[1:])])
        return [replace(held[0], text=text, _scan=None)]

    def _may_go_on(self, line: Line) -> bool:
        text = line.text
        if not 8 <= len(text) <= _MOST_CHARACTERS:
            return False
        tail = text[-64:]
        self._column = -1
        if text.isascii() and not may_dangle(tail.lower().encode()):
            return False
        is_rich = self._fruitless[True] < _TRIES and _CALLER.search(tail) is not None
        self._column = line.prefix.at + _blanks(text) if is_rich else -1
        if not is_rich and (self._fruitless[False] >= _TRIES or _DANGLING.search(tail) is None):
            return False
        says = METRIC.search(text) is not None or _names_step(text)
        return says and any(map(str.isdigit, text))

    def _goes_on(self, line: Line) -> bool:
        if len(self._lines) >= _MOST_LINES or not line.text.strip() or len(line.text) > _MOST_CHARACTERS:
            return False
        if self._column >= 0:
            blanks = _blanks(line.text)
            first = self._lines[0].prefix
            is_outer = 0 < line.prefix.at <= first.at - _FEWEST_BLANKS and line.prefix.rank == first.rank
            if is_outer and blanks >= _FEWEST_BLANKS:
                return abs(line.prefix.at + blanks - self._column) <= 1  # behind a launcher's label or a time
            if line.prefix.at:  # a separator that begins the line is no prefix
                is_bare = line.prefix.time is None and not line.prefix.rank
                return is_bare and 0 < line.prefix.at - self._column <= 2
            return blanks >= _FEWEST_BLANKS and abs(blanks - self._column) <= 1
        first = self._lines[0].prefix
        if line.prefix.time is not None or line.prefix.rank != first.rank:
            return False
        if not line.prefix.rank and line.prefix.at > first.at + _SEPARATOR and first.time is None:
            return False  # a level or a name before it: another program's
        if _DANGLING.search(self._lines[-1].text[-64:]) is None or _GOES_ON.match(line.text) is None:
            return False
        return not (_names_step(line.text) or tells_error(line.text) or is_like_a_bar(line.text))


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())


def _names_step(text: str) -> bool:
    """Whether a record begins here: its step is among the first words."""
    return _STEP_WORD.search(text, 0, 48) is not None
