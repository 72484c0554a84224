"""Lines whose step is a number alone before their words: ``120: loss 2.5``, ``120 loss=2.5``; srun's label looks so.

One line does not tell, several do: a number that counts up is a step, one of few that come again is a rank.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from trainmon.tails.formats.flat import MEASURE, SETTING, is_epoch, shape_of
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading, Template
from trainmon.tails.formats.templates import Templates

_NUMBER = re.compile(r"\s*(\d{1,9})(?:\s?: +(?=[^\W\d])| +(?=[A-Za-z]\w{0,30}[=:]))")
_ENOUGH = 3  # lines that count up, but not by one from 0: ranks seldom do
_ENOUGH_BY_ONE = 24  # lines that count up by one: so many ranks do not write in turn


class Numbered(Dialect):
    """Holds lines back until their numbers have told what they are."""

    name = "numbered"
    tokens = (b"loss", b"perplexity", b"reward", b"ppl", b"nll", b"bpb")
    samples = (b"0: loss 3.25, lr 1e-4\n50: loss 3.125, lr 1e-4\n100: loss 3.0, lr 1e-4\n",)

    def __init__(self) -> None:
        self._held: list[tuple[float, Reading, Line]] = []
        self._is_step: bool | None = None
        self._shapes = Templates()

    @property
    def is_open(self) -> bool:
        """Whether lines are held back."""
        return bool(self._held)

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if self._is_step is False or (self._is_step is None and not self._held and sink.step is not None):
            return False
        match = _NUMBER.match(line.text)
        if match is not None:
            number, words = float(match[1]), replace(line, text=line.text[match.end() :], _scan=None)
        elif line.prefix.is_bare and not sink.is_telling:  # a row of a box
            number, words = float(line.prefix.rank), line
        else:
            return False
        reading = self._reading(words)
        if reading is None:
            return False
        self._held.append((number, reading, line))
        if self._is_step is None:
            self._is_step = self._evidence()
        if self._is_step is not None:
            self.flush(sink)
        return True

    def _reading(self, words: Line) -> Reading | None:
        """What the words behind the number measured; None when they name a step of their own or no metric."""
        known = self._shapes.read(words.text)
        if known is not None:
            return known[1]
        shape = shape_of(words, needs_step=False)
        if (
            shape is None
            or shape.step is not None
            or not words.text.strip().startswith(shape.fields[0][0].split(" (")[0])
        ):
            return None
        keys = [key for key, _ in shape.fields]
        if any(is_epoch(pair, words.text) for pair in words.scan().pairs[:2]):
            return None  # which counts, whatever the number before it
        if SETTING.search(keys[0]) or not any(map(MEASURE.search, keys)):
            return None
        template = Template(words.text, shape, self.name)
        reading = template.read(words.text)
        if reading is not None:
            self._shapes.add(template)
        return reading

    def _evidence(self) -> bool | None:
        """Whether the numbers held are steps; None while they do not tell."""
        numbers = [number for number, _, _ in self._held]
        if any(after <= before for before, after in pairwise(numbers)):
            return False
        counts_by_one = numbers[-1] - numbers[0] == len(numbers) - 1
        return True if len(numbers) >= (_ENOUGH_BY_ONE if counts_by_one else _ENOUGH) else None

    def flush(self, sink: Sink) -> None:
        """Gives what is held back; at the end of a file two lines that count up are enough."""
        held, self._held = self._held, []
        is_step = self._is_step if self._is_step is not None else len(held) > 1
        for number, reading, line in held:
            if is_step:
                reading.step, reading.step_key = number, "number"
                line = replace(line, prefix=replace(line.prefix, rank=""))
            sink.emit(reading, line)
