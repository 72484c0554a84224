"""Prometheus' text format, a dump after the other: ``# TYPE train_loss gauge`` and ``train_loss{run="a"} 2.5``."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.record import TimeKind

_ABOUT = re.compile(r"# (?:HELP|TYPE|UNIT) [A-Za-z_:][\w:]* ?.*")
_END = re.compile(r"# EOF\s*")
_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]{0,200})(?:\{(?P<labels>[^{}]{0,1000})\})? "
    r"(?P<value>[-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|NaN|Inf))"
    r"(?: (?P<time>\d{10,13}(?:\.\d+)?))?\s*"
)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_STEP = re.compile(r"(?:\w+[_:])?(?:global_step|step|steps|iteration|iterations|update|updates)(?:_total)?")
_NO_STEP = re.compile(r"skip|time|second|per_|checkpoint|eval|val_|max|warmup|total_steps")
_KEPT = frozenset(["rank", "layer", "expert", "source", "domain", "task", "modality", "gpu", "local_rank"])
_LEFT_OUT = ("_bucket", "_created")
_MOST = 20_000
_MILLISECONDS_FROM = 1e11


class Exposition(Dialect):
    """A dump ends where a series comes again. Labels that name no part of the run (its name, its host) are left out."""

    name = "prometheus"
    tokens = (b"# type ", b"# help ")
    samples = (
        b'# TYPE train_loss gauge\ntrain_loss{run="a"} 3.25\n# TYPE train_step gauge\ntrain_step{run="a"} 10\n'
        b'# TYPE train_loss gauge\ntrain_loss{run="a"} 3.125\n# TYPE train_step gauge\ntrain_step{run="a"} 20\n',
    )

    def __init__(self) -> None:
        self._values: dict[str, float | None] | None = None  # None: no dump is begun
        self._line: Line | None = None

    @property
    def is_open(self) -> bool:
        """Whether a dump is begun."""
        return self._values is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        text = line.text
        if _ABOUT.fullmatch(text):
            if self._values is None:
                self._values, self._line = {}, None
            return True
        if self._values is None:
            return False
        if not text.strip():
            return True
        match = _SAMPLE.fullmatch(text)
        if match is None or len(self._values) >= _MOST:
            self.flush(sink)
            return _END.fullmatch(text) is not None
        name = match["name"]
        labels = ",".join(f"{key}={value}" for key, value in _LABEL.findall(match["labels"] or "") if key in _KEPT)
        key = f"{name}{{{labels}}}" if labels else name
        if name.endswith(_LEFT_OUT) or "quantile=" in (match["labels"] or ""):
            return True
        if key in self._values:
            self.flush(sink)
            self._values = {}
        if self._line is None:
            self._line = line
        if match["time"]:
            time = float(match["time"])
            time = time / 1e3 if time > _MILLISECONDS_FROM else time
            self._line = replace(self._line, prefix=replace(line.prefix, time=time, time_kind=TimeKind.ABSOLUTE))
        try:
            self._values[key] = to_number(match["value"])
        except ValueError:
            sink.cannot_read(line)
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        values, line, self._values, self._line = self._values, self._line, None, None
        if not values or line is None or not any(map(METRIC.search, values)):
            return
        steps = [key for key in values if _STEP.fullmatch(key) and _NO_STEP.search(key) is None]
        key = next(iter(sorted(steps, key=lambda one: ("global" not in one, len(one)))), "")
        step = values.pop(key) if key else None
        sink.emit(Reading(values, step, key, dialect=self.name), line)
