"""A line's shape as one compiled regular expression, learned from the first line of that shape.

Reading a line for the first time means looking at every number in it (`pairs.scan`); every later line of the same
shape costs one match. So each trainer's line, known or not, is read at the speed of a hand-written expression.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from trainmon.tails.formats.numbers import MICROSOFT, MULTIPLIERS, NUMBER, is_absent, to_number, with_multiplier
from trainmon.tails.quick_dataclass import dataclass

# In a template the text around a number is fixed, so the number can be matched loosely; but atomically, or a line
# that fits all but its end would be tried in every way its numbers can be cut.
_NUMBER = (
    MICROSOFT + r"|(?>[-+]?(?:\d+\.?\d*|\.\d+)(?:,\d{3}(?!\d)(?:\.\d+)?)*(?:[eE][-+]?\d+)?)"
    r"|[-+]?[nN][aA][nN]|[-+]?[iI](?:nf(?:inity)?|NF)|None|null|[nN]/[aA]|NA|--?(?![\w.-])"
)
VALUE = f"({_NUMBER})"
MULTIPLIED = f"((?:{_NUMBER})[{''.join(MULTIPLIERS)}])"  # 43.1K
_DURATION = re.compile(r"(?:\d+ ?[a-z]{1,7}\b,? ?|\d+[dhms])+(?<! )")  # 1h 2m, 3d4h12m
# What is not read must not be a number either: a line with one there has another shape.
_CLOCK = r"(?>\d+ days?(?:,? ?\d+(?::\d+)+(?:[.,]\d+)?)?|\d+(?::\d+)+(?:[.,]\d+)?)"
_DATE = r"\d{4}-\d\d-\d\d"
_VERSION, _HEXADECIMAL = r"(?>\d+\.\d+\.\d+[\w.]*)", r"(?>0x[\da-fA-F]+)"
_WORD = (
    r"(?>(?!(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?|INF|None|null|NA)(?![\w.]))[\w.]+)"
)
_HEADS = 5  # step, total, epoch, epochs, rank
_SPACES = re.compile(r"\s+")
_RANK_DIGITS = re.compile(r"(?<=rank)([-_ ]?)\d+")


@dataclass(slots=True)
class Reading:
    """What one line measured. `values`: key -> number, None for a logged null.

    `step_key` is "" when the line names no step. `total` is the number behind the step's slash. `epoch` and
    `per_epoch` are given where the step counts inside an epoch (``[2/10][30/1251]``): `step` is then its place
    in the epoch. `secondary` marks a second account of steps that another line also reports. `rank` is the process
    that the line names among its pairs, "" without one.
    """

    values: Mapping[str, float | None]
    step: float | None = None
    step_key: str = ""
    total: float | None = None
    epoch: float | None = None
    epochs: float | None = None
    secondary: bool = False
    dialect: str = ""
    time: float | None = None
    rank: str = ""


@dataclass(slots=True)
class Shape:
    """Where in a text the values stand. Spans are (start, end); `others` vary from line to line and are not read."""

    fields: list[tuple[str, tuple[int, int]]]
    others: list[tuple[int, int]] = field(default_factory=list)
    step: tuple[int, int] | None = None
    step_key: str = ""
    total: tuple[int, int] | None = None
    epoch: tuple[int, int] | None = None
    epochs: tuple[int, int] | None = None
    rank: tuple[int, int] | None = None
    secondary: bool = False


def read_once(text: str, shape: Shape, dialect: str) -> Reading:
    """What the line that `shape` was found in says, read by its places: cheap once, where `Template` is cheap often.

    >>> read_once("step 5 loss 2.5", Shape([("loss", (12, 15))], step=(5, 6), step_key="step"), "generic").values
    {'loss': 2.5}
    """
    raw = [(key, text[start:end]) for key, (start, end) in shape.fields]
    heads = (None if span is None else _head(text[span[0] : span[1]]) for span in (shape.step, shape.total))
    step, total = heads
    reading = Reading(_tolerant(raw), step, shape.step_key, total, secondary=shape.secondary, dialect=dialect)
    reading.epoch = None if shape.epoch is None else _head(text[shape.epoch[0] : shape.epoch[1]])
    reading.epochs = None if shape.epochs is None else _head(text[shape.epochs[0] : shape.epochs[1]])
    reading.rank = "" if shape.rank is None else text[shape.rank[0] : shape.rank[1]]
    return reading


class Template:
    """Reads lines of one shape.

    >>> text = "step 5/9 | loss: 2.5"
    >>> shape = Shape([("loss", (17, 20))], step=(5, 6), step_key="step", total=(7, 8))
    >>> reading = Template(text, shape, "generic").read("step 16/9 | loss:  nan")
    >>> reading.step, reading.total, reading.values
    (16.0, 9.0, {'loss': nan})
    """

    def __init__(self, text: str, shape: Shape, dialect: str) -> None:
        self.dialect = dialect
        self.shape = shape
        self.was_heard = False  # whether the words of one such line were looked at
        self.opening = text[: shape.step[0]].rstrip() if shape.step is not None else ""
        self.speaks = False  # whether lines of this shape also say something in words
        heads = [shape.step, shape.total, shape.epoch, shape.epochs, shape.rank]
        spans: list[tuple[tuple[int, int], int]] = [(span, slot) for slot, span in enumerate(heads) if span is not None]
        spans += [(span, _HEADS + index) for index, (_, span) in enumerate(shape.fields)]
        spans += [(span, -1) for span in shape.others]
        spans.sort()
        parts: list[str] = []
        groups: dict[int, int] = {}  # slot -> its group
        at, count, last = 0, 0, (-1, -1)
        for (start, end), slot in spans:
            if start < at:
                if slot >= 0 and last == (start, end):  # an epoch is a head and a metric
                    groups[slot] = count - 1
                continue
            parts.append(_literal(text[at:start]))
            if slot < 0:
                parts.append(_unread(text[start:end]))
            else:
                parts.append(MULTIPLIED if text[end - 1] in MULTIPLIERS else VALUE)
                groups[slot], last = count, (start, end)
                count += 1
            at = end
        parts.append(_literal(text[at:].rstrip()))
        self.parts = tuple(parts)  # patterns of words, and between them `VALUE`, `MULTIPLIED` or what is not read
        self.regex = re.compile("".join(parts) + r"\s*")
        self._fullmatch = self.regex.fullmatch
        heads_at = [groups.get(slot, -1) for slot in range(_HEADS)]
        self._step, self._total, self._epoch, self._epochs, self._rank = heads_at
        self._step_key = shape.step_key
        self._fields = [(groups[_HEADS + i], key) for i, (key, _) in enumerate(shape.fields) if _HEADS + i in groups]
        self.keys = tuple(key for _, key in self._fields)

    def match(self, text: str) -> Sequence[str] | None:
        """The raw values of `text`, None when it has another shape."""
        match = self._fullmatch(text)
        return match.groups() if match is not None else None

    def read(self, text: str) -> Reading | None:
        """What `text` says, None when it has another shape."""
        groups = self.match(text)
        return self.reading(groups) if groups is not None else None

    def reading(self, groups: Sequence[str]) -> Reading:
        """Numbers of the raw values `groups`."""
        return self.with_heads(self.values(groups), groups)

    def values(self, groups: Sequence[str]) -> dict[str, float | None]:
        """The metrics among `groups`."""
        try:
            return {key: float(groups[at]) for at, key in self._fields}
        except ValueError:
            return _tolerant([(key, groups[at]) for at, key in self._fields])

    def is_plain(self, groups: Sequence[str]) -> bool:
        """Whether each metric of `groups` is a number that `float` reads as it stands."""
        return len(self.values(groups)) == len(self._fields) and not any(
            "," in groups[at] or "#" in groups[at] or groups[at] in ("None", "null") or groups[at][-1] in MULTIPLIERS
            for at, _ in self._fields
        )

    @property
    def head_groups(self) -> list[int]:
        """Which raw values are step, total, epoch, epochs and rank, in that order; those that there are."""
        return [at for at in (self._step, self._total, self._epoch, self._epochs, self._rank) if at >= 0]

    @property
    def field_groups(self) -> list[int]:
        """Which raw values are the metrics, in the order of `keys`."""
        return [at for at, _ in self._fields]

    def with_heads(self, values: Mapping[str, float | None], groups: Sequence[str] | Sequence[bytes]) -> Reading:
        """A reading of `values`, with the step and its like from the raw values `groups`."""
        reading = Reading(values, step_key=self._step_key, dialect=self.dialect)
        if self._step >= 0:
            reading.step = _head(groups[self._step])
        if self._total >= 0:
            reading.total = _head(groups[self._total])
        if self._epoch >= 0:
            reading.epoch = _head(groups[self._epoch])
        if self._epochs >= 0:
            reading.epochs = _head(groups[self._epochs])
        if self._rank >= 0:
            raw = groups[self._rank]
            reading.rank = raw if isinstance(raw, str) else raw.decode("ascii", "replace")
        reading.secondary = self.shape.secondary
        return reading


def _head(raw: str | bytes) -> float | None:
    try:
        return float(raw)
    except ValueError:
        pass
    text = raw if isinstance(raw, str) else raw.decode("ascii", "replace")
    try:
        return with_multiplier(text) if text[-1:] in MULTIPLIERS else to_number(text)
    except ValueError:
        return None


def _tolerant(raw: Sequence[tuple[str, str]]) -> dict[str, float | None]:
    """The values of which some are not plain numbers; what cannot be read is left out."""
    values: dict[str, float | None] = {}
    for key, text in raw:
        if is_absent(text):
            continue
        try:
            values[key] = with_multiplier(text) if text[-1] in MULTIPLIERS else to_number(text)
        except ValueError:
            continue
    return values


def _unread(text: str) -> str:
    """A pattern for number-like text that is not read: a number, a time, a date or version."""
    if _DURATION.fullmatch(text):
        return _DURATION.pattern
    if ":" in text or "day" in text:
        return _CLOCK
    if re.fullmatch(NUMBER, text):
        return f"(?:{_NUMBER})"
    of_a_kind = (kind for kind in (_DATE, _VERSION, _HEXADECIMAL) if re.fullmatch(kind, text))
    return next(of_a_kind, _DATE if "-" in text else _WORD)


def _literal(text: str) -> str:
    """A pattern for the fixed text between two values; runs of blanks match any run."""
    pieces = _SPACES.split(text)
    return r"\s*".join(_RANK_DIGITS.sub(r"\1\\d+", re.escape(piece)) for piece in pieces)
