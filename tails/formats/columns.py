"""Tables printed row by row under a header: ``  step   loss    lr`` and then numbers alone, however they are ruled."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import METRIC, STEP_KEY
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, is_absent, to_number, with_multiplier
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.steps import ranked_step_keys

_NAME = re.compile(r"[A-Za-z_|∇#][\w ./%@()|-]{0,40}")
_RULE = re.compile(r"[-=+|:─━┼│┃╪╇├┤╞╡\s]{3,}")
_CELL = re.compile(rf"(?P<value>{NUMBER})(?P<unit>[kKMGTB]|%|m?s)?")
_ABSENT = frozenset(("", "-", "--", "n/a", "N/A", "na", "—"))
_BARS = re.compile(r"[|│┃]")
_DELIMITERS = (_BARS, re.compile(r"\t"), re.compile(r","), re.compile(r"\s{2,}"), re.compile(r"\s+"))
_OF_TOTAL = re.compile(r"(\d{1,9})/(\d{1,9})")
_BAR_BEHIND = re.compile(r":\s{0,8}\d{1,3}%\|.*")
_INTEGER = re.compile(r"\d{1,9}")
Header = tuple[re.Pattern[str], list[str], str, bool]  # delimiter, names, the step's, whether it is indented
_LONGEST = 2000
_PATIENCE_NEW = 3  # lines between a header and its first row
_PATIENCE = 60  # lines of others between two rows


def _cells(text: str, delimiter: re.Pattern[str]) -> list[str]:
    cells = [cell.strip() for cell in delimiter.split(text.strip())]
    if delimiter is _BARS:
        cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return cells


class Columns(Dialect):
    """The header names a step (or an epoch) and a metric; a row has as many cells, nearly all of them numbers."""

    name = "table"
    tokens = (b"step", b"iter", b"epoch", b"loss")
    samples = (
        b"  step    loss        lr   tok/s\n------------------------------\n     1   10.91  1.0e-05   12345\n"
        b"     2   10.80  2.0e-05   12350\n",
        b"Training on 1 device\n|  step |   loss | grad_norm |\n|-------|--------|-----------|\n"
        b"|    10 | 3.2500 |    1.2500 |\n|    20 | 3.1250 |       nan |\n",
        b"Training on 1 device\nStep\tTraining Loss\n1\t1.25\n2\t1.125\n",
        b"     step    loss        lr\n0      10   3.250  1.0e-05\n1      20   3.125  2.0e-05\n",
    )

    def __init__(self) -> None:
        self._headers: list[Header] = []
        self._unnamed: list[tuple[re.Pattern[str], list[str]]] = []  # of a data frame whose index is named below
        self._idle = 0
        self._has_rows = False
        self._drawn: tuple[Reading, Line] | None = None

    @property
    def is_open(self) -> bool:
        """Whether rows may come."""
        return bool(self._headers)

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        text = line.text
        if len(text) > _LONGEST:
            return False
        if self._headers:
            if self._row(text, line, sink):
                return True
            if _RULE.fullmatch(text):
                return True
            self._wait()
        found = _headers_of(text) or self._with_index(text)
        self._unnamed = [] if found else _unnamed_of(text)
        if found:
            self._headers, self._idle, self._has_rows = found, 0, False
        return bool(found)

    def pass_by(self, sink: Sink) -> None:  # noqa: ARG002 - the hook
        """A record of another dialect is a line without a row."""
        self._wait()

    def _wait(self) -> None:
        self._idle += 1
        if self._idle > (_PATIENCE if self._has_rows else _PATIENCE_NEW):
            self._headers = []

    def _with_index(self, text: str) -> list[Header]:
        """The headers above, when `text` is the name of a data frame's index, and that is a step."""
        name = text.strip()
        if not self._unnamed or not (STEP_KEY.fullmatch(name) or name.lower() == "epoch"):
            return []
        return [(delimiter, [name, *names], name, False) for delimiter, names in self._unnamed if name not in names]

    def _row(self, text: str, line: Line, sink: Sink) -> bool:
        for header in self._headers:
            delimiter, names, step_name, is_indented = header
            cells = _cells(_BAR_BEHIND.sub("", text), delimiter)
            if is_indented and len(cells) == len(names) + 1 and _INTEGER.fullmatch(cells[0]):
                cells = cells[1:]  # a data frame's index
            if len(cells) != len(names):
                continue
            values = _values(names, cells)
            of_total = _OF_TOTAL.fullmatch(cells[names.index(step_name)]) if len(cells) == len(names) else None
            if of_total is not None:
                values[step_name] = float(of_total[1])
            step = values.pop(step_name, None)
            if step is None or not any(METRIC.search(name) for name in values):
                continue
            self._headers, self._idle, self._has_rows = [header], 0, True
            reading = Reading(values, step, step_name, float(of_total[2]) if of_total else None, dialect=self.name)
            if of_total is None:
                sink.emit(reading, line)
            else:
                self._hold(reading, line, sink)
            return True
        return False

    def _hold(self, reading: Reading, line: Line, sink: Sink) -> None:
        """Keeps a row that is drawn again and again until the next one begins."""
        if self._drawn is not None and self._drawn[0].step != reading.step:
            self.flush(sink)
        self._drawn = (reading, line)

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        drawn, self._drawn = self._drawn, None
        if drawn is not None:
            sink.emit(*drawn)


def _unnamed_of(text: str) -> list[tuple[re.Pattern[str], list[str]]]:
    """The columns of a data frame, where none of them is a step."""
    if text[:1] != " " or ":" in text or "=" in text:
        return []
    names = text.split()
    is_header = len(names) > 1 and len(set(names)) == len(names) and all(map(_NAME.fullmatch, names))
    return [(_DELIMITERS[-1], names)] if is_header and any(map(METRIC.search, names)) else []


def _headers_of(text: str) -> list[Header]:
    """The headers that `text` could be, one a delimiter."""
    if ":" in text or "=" in text:
        return []
    plain = text.lstrip("# ")
    found = _headers_of(plain) if text.startswith("#") and plain else []  # numpy's and gnuplot's remark
    for delimiter in _DELIMITERS:
        names = _cells(text, delimiter)
        if len(names) < 2 or len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
            continue
        step = next(iter(ranked_step_keys(names)), None) or next(filter(STEP_KEY.fullmatch, names), None)
        step = step or ("#" if "#" in names else None)
        if step is not None and any(METRIC.search(name) for name in names if name != step):
            found.append((delimiter, names, step, text[:1] == " "))
    return found


def _values(names: list[str], cells: list[str]) -> dict[str, float | None]:
    """The numbers of a row; empty when a third or more of its cells are words."""
    values: dict[str, float | None] = {}
    words = 0
    for name, cell in zip(names, cells, strict=True):
        match = _CELL.fullmatch(cell)
        if match is None:
            words += cell not in _ABSENT
            continue
        raw, unit = match["value"], match["unit"]
        if unit in ("%", "s", "ms"):
            values[f"{name} ({unit})"] = to_number(raw)
        elif not is_absent(raw):
            values[name] = with_multiplier(cell) if unit else to_number(raw)
    return {} if words * 3 >= len(cells) else values
