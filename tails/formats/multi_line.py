"""Records of several lines: a header that names the step, and an indented line for each metric."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import ClassVar

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import is_absent, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.steps import says_eval

_MAX_METRICS = 100_000
_PATIENCE = 3  # lines of another program among those of a record


class MultiLine(Dialect):
    """Holds a record until a line comes that is no metric of it.

    `metric` has the groups key, value and unit; `other` is what an indented line without a number looks like.
    """

    metric: ClassVar[re.Pattern[str]]
    other: ClassVar[re.Pattern[str]]

    def __init__(self) -> None:
        self._open: tuple[Reading, dict[str, float | None], Line] | None = None
        self._idle = 0  # lines since the newest of the record

    @property
    def is_open(self) -> bool:
        """Whether a record is begun."""
        return self._open is not None

    @abstractmethod
    def header(self, text: str, metrics: dict[str, float | None]) -> Reading | None:
        """The record that `text` begins, which will hold `metrics`; None when it begins none."""

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if self._open is not None:
            _, values, _ = self._open
            match = self.metric.fullmatch(line.text)
            if match is not None and len(values) < _MAX_METRICS:
                if not is_absent(match["value"]):
                    values[f"{match['key']} (%)" if match["unit"] else match["key"]] = to_number(match["value"])
                self._idle = 0
                return True
            if self.other.fullmatch(line.text):
                self._idle = 0
                return True
            self._idle += 1
            if self._idle <= _PATIENCE and self._is_beside(line.text):
                return False
            self.flush(sink)
        metrics: dict[str, float | None] = {}
        reading = self.header(line.text, metrics) or self._result(line.text, metrics, sink)
        if reading is None:
            return False
        reading.dialect = self.name
        self._idle = 0
        self._open = (reading, metrics, line)
        return True

    def _is_beside(self, text: str) -> bool:
        """Whether a line is neither of the record nor the beginning of another: a server's, a warning."""
        return METRIC.search(text) is None and self.header(text, {}) is None

    def _result(self, text: str, metrics: dict[str, float | None], sink: Sink) -> Reading | None:
        """The record that an indented metric of held-out data begins, whose heading is not known."""
        if text[:1] not in (" ", "\t") or not sink.dialects[self.name]:
            return None
        match = self.metric.fullmatch(text)
        if match is None or not says_eval(match["key"]) or is_absent(match["value"]):
            return None
        metrics[match["key"]] = to_number(match["value"])
        return Reading(metrics)

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._open = self._open, None
        if held is not None:
            reading, metrics, line = held
            if reading.step is None:  # an evaluation, which names no step of its own
                if not metrics:
                    return
                reading.step = sink.step
            sink.emit(reading, line)
