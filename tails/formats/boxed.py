"""Boxes of one record: ``| rollout/ |`` and ``|    ep_rew_mean | 22.5 |`` between two rules (Stable-Baselines)."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, is_absent, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.steps import ranked_step_keys, step_key_of

_RULE = re.compile(r"\s*[-+=─━┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┡┩╇┳]{10,}\s*")
_TWO_RULES = re.compile(r"-{10,200} {1,4}-{3,200}\s*")  # over and under two columns that nothing parts
_BARE_ROW = re.compile(r"(?P<key>[A-Za-z][^|│┃]{0,100}?) {2,120}(?P<value>[^\s|│┃]{1,40})\s*")
_INNER = re.compile(r"\s*\+[-+=]+\+\s*|\s*[├╞┝┠┣╠┡].*")  # a rule that may stand between two rows
_MEASURED = frozenset(("rollout/", "time/", "train/", "eval/"))  # headings of what is measured, whatever it is
_ROW = re.compile(r"[|│┃]?(?P<key>[^|│┃]{1,120}?)\s*[|│┃](?P<value>[^|│┃]{0,120})[|│┃]?\s*")
# A panel of rich: its title in the rule over it, and a name and a value in each line.
_TITLED = re.compile(r"\s*[╭┌┏╔][─━═ ]{2,}(?P<title>[^─━═╭╮┌┐]{3,80}?)[─━═ ]{2,}[╮┐┓╗]\s*")
_PANEL_ROW = re.compile(
    r"\s*[|│┃║]\s*(?P<key>[A-Za-z][\w /.()%@-]{0,60}?)(?:\s{2,40}|\s?[:=]\s{0,40})(?P<value>[^\s|│┃║]{1,40})"
    r"\s*[|│┃║]\s*"
)
_NUMBER = re.compile(NUMBER)
_NAMED = re.compile(
    r"(?:.*\b)?(?:step|iteration)\s?[:#=]?\s?(?P<step>\d{1,12})(?:\s?/\s?(?P<total>\d{1,12}))?"
    r"(?!\.?\d)[^\d]{0,40}",
    re.IGNORECASE,
)
# ``train | step: 100 | steps/sec: 5.2 | output:``: what it says of the step follows below.
_OUTPUT = re.compile(
    r".{0,48}?\b(?:step|iteration)\s?[:#=]?\s{0,8}(?P<step>\d{1,12})(?:\s?/\s?(?P<total>\d{1,12}))?(?!\.?\d)",
    re.IGNORECASE,
)
# Where a run goes on from, or what was written: no step that is told of below.
_ELSEWHERE = re.compile(r"\b(?:resum|continu|load|restor|sav|skip|checkpoint|ckpt)|\bfrom (?:global[ _])?step", re.I)
_PER_STEP = re.compile(r"\bper-step time [\d.]{1,12}s\s*$")
_NEAR = 6  # lines from the one that names the step to the box
_MOST_ROWS = 500
_MOST_BETWEEN = 8  # records of others between two rows
_OF_OTHERS = 3  # lines of another program between two rows
_LONGEST_HEADING = 200
_LONGEST_ROW = 1000


class Boxed(Dialect):
    """Two columns, names and values. Names under a heading that ends in ``/`` belong to it."""

    name = "boxed table"
    tokens = (b"step", b"iteration", b"----------", b"==========", "──────────".encode(), "━━━━━━━━━━".encode())
    samples = (
        b"--------------------------\n| rollout/      |        |\n|   ep_rew_mean | 20.5   |\n"
        b"| time/         |        |\n|   iterations  | 1      |\n"
        b"| train/        |        |\n|   loss        | 6.25   |\n--------------------------\n",
        "Train step 3/90 done.\n┌────────────┬────────┐\n│ actor/loss │ 0.25   │\n└────────────┴────────┘\n".encode(),
    )

    def __init__(self) -> None:
        self._rows: dict[str, float | None] | None = None
        self._line: Line | None = None
        self._section = ""
        self._sections: set[str] = set()
        self._is_bare = False  # whether nothing parts its two columns
        self._passed = 0  # records of others since its newest row
        self._beside = 0  # lines of another program since then
        self._is_ruled = False  # whether the newest line is a rule that may stand between two rows
        self._named: tuple[float, float | None, int] | None = None  # the step that stands over the box, its total, line

    @property
    def is_open(self) -> bool:
        """Whether a box is begun."""
        return self._rows is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        text = line.text
        if _TWO_RULES.fullmatch(text):
            self._begin(line, sink)
            self._is_bare = True
            return True
        if _RULE.fullmatch(text):
            if self._rows and _INNER.fullmatch(text):  # between two rows of a grid, unless no row follows
                self._is_ruled = True
                return True
            self._begin(line, sink)
            return True
        titled = _TITLED.fullmatch(text) if len(text) <= _LONGEST_ROW else None
        if titled is not None:
            self._look_for_step(replace(line, text=titled["title"].strip(), _scan=None), sink)
            self._begin(line, sink)
            return True
        if self._rows is None:
            self._look_for_step(line, sink)
            return False
        match = None
        if len(text) <= _LONGEST_ROW:
            bare = _BARE_ROW.fullmatch(text) if self._is_bare else None
            match = bare or _PANEL_ROW.fullmatch(text) or _ROW.fullmatch(text)
        if match is None and not self._is_ruled and self._beside < _OF_OTHERS and METRIC.search(text) is None:
            self._beside += 1
            self._look_for_step(line, sink)
            return False
        if match is None or len(self._rows) >= _MOST_ROWS:
            self._close(sink)
            self._look_for_step(line, sink)
            return False
        self._is_ruled, self._passed, self._beside = False, 0, 0
        self._row(match["key"], match["value"].strip())
        sink.is_telling = True
        return False

    def pass_by(self, sink: Sink) -> None:
        """A rule was no box's when a record follows; between the rows of a box another may write some."""
        self._passed += 1
        if not self._rows or self._passed > _MOST_BETWEEN:
            self._close(sink)

    def _close(self, sink: Sink) -> None:
        """Ends a box without a rule below it: only one that a rule between two rows may have closed is given."""
        if self._is_ruled:
            self.flush(sink)
        self._rows, self._is_ruled = None, False

    def _begin(self, line: Line, sink: Sink) -> None:
        self.flush(sink)
        self._passed = self._beside = 0
        self._rows, self._line, self._section, self._sections = {}, line, "", set()
        self._is_bare = False

    def _look_for_step(self, line: Line, sink: Sink) -> None:
        if len(line.text) > _LONGEST_HEADING or _ELSEWHERE.search(line.text) is not None:
            return
        tells = line.text.rstrip().endswith(":") or _PER_STEP.search(line.text) is not None
        match = _NAMED.fullmatch(line.text) or (_OUTPUT.match(line.text) if tells else None)
        if match is not None:
            total = float(match["total"]) if match["total"] else None
            self._named = sink.announced = (float(match["step"]), total, line.line_no)
            sink.is_telling = True

    def _row(self, key: str, value: str) -> None:
        if not value and key.rstrip().endswith("/"):
            self._section = key.strip()
            self._sections.add(self._section)
        elif self._rows is not None and _NUMBER.fullmatch(value) and not is_absent(value):
            is_inner = key[:1].isspace() and key[1:2].isspace()
            self._rows[(self._section if is_inner else "") + key.strip()] = to_number(value)

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        rows, line, self._rows = self._rows, self._line, None
        self._is_ruled = False
        if not rows or line is None:
            return
        if _MEASURED.isdisjoint(self._sections) and not any(METRIC.search(key) for key in rows):
            return
        step = step_key_of(rows)
        named = self._named
        if step is None and named is not None and 0 <= line.line_no - named[2] <= _NEAR:
            sink.emit(Reading(rows, named[0], "step", named[1], dialect=self.name), line)
            return
        step = step or next(iter(ranked_step_keys(rows)), None)
        value = rows[step] if step is not None else None
        if step is not None and value is not None and value == value // 1:
            sink.emit(Reading(rows, rows.pop(step), step, dialect=self.name), line)
