"""Blocks under a heading that is the step alone: ``===== Step 3/100 =====`` or ``step: 3``, then one metric a line."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import EVAL_WORD, METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, is_absent, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_HEADING = re.compile(
    r"[\W_]{0,120}(?:(?P<eval>eval|validation|test)[ _])?(?:(?:learning|training|train|global|optimi[sz]er)[ _])?"
    r"(?P<key>step|iteration|iter|update)\s*[:#=]?\s*\[?(?P<step>\d+)(?:\s*(?:/|of)\s*(?P<total>\d+))?[\W_]{0,120}",
    re.IGNORECASE,
)
_METRIC = re.compile(
    rf"[\s•*·–>│|-]*(?P<key>[A-Za-z][\w /().%@#-]{{0,60}}?)\s*[:=]\s*(?P<value>{NUMBER})\s?(?P<unit>%|[A-Za-z]"
    r"[A-Za-z/]{0,11})?,?\s*(?:\([^)]{0,80}\))?[\s|│]*"
)
_LONGEST = 400
_PATIENCE = 40  # lines that are no metric, in a block


class Headed(Dialect):
    """A block ends at the next heading, when another dialect reads a record, or after `_PATIENCE` other lines."""

    name = "headed block"
    tokens = (b"step", b"iter", b"update")
    samples = (
        b"======== Step 1/100 ========\n  Training results:\n  * Loss: 0.25\n  * Avg Reward: 0.5\n"
        b"======== Step 2/100 ========\n  * Loss: 0.125\n  * Total step time: 61.5s\n",
        b"step: 10\n  loss: 3.25\n  lr: 1.0e-04\n\nstep: 20\n  loss: 3.125\n  lr: 1.0e-04\n",
    )

    def __init__(self) -> None:
        self._open: tuple[Reading, dict[str, float | None], Line] | None = None
        self._idle = 0
        self._others = 0  # records of other dialects when the block was begun

    @property
    def is_open(self) -> bool:
        """Whether a block is begun."""
        return self._open is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        text = line.text
        if len(text) > _LONGEST:
            return False
        match = _HEADING.fullmatch(text)
        if self._open is not None and match is None:
            if sink.dialects.total() != self._others:
                self.flush(sink)
            elif self._metric(text):
                return True
        if match is None:
            self._idle += self._open is not None and bool(text.strip())
            if self._idle > _PATIENCE:
                self.flush(sink)
            return False
        self.flush(sink)
        values: dict[str, float | None] = {}
        reading = Reading(values, float(match["step"]), match["key"].lower(), dialect=self.name)
        reading.total = float(match["total"]) if match["total"] else None
        reading.secondary = match["eval"] is not None
        self._open, self._idle, self._others = (reading, values, line), 0, sink.dialects.total()
        return True

    def _metric(self, text: str) -> bool:
        match = _METRIC.fullmatch(text)
        if match is None or self._open is None:
            return False
        if not is_absent(match["value"]):
            key = f"{match['key']} ({match['unit']})" if match["unit"] else match["key"]
            self._open[1].setdefault(key, to_number(match["value"]))
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._open, self._idle = self._open, None, 0
        if held is None:
            return
        reading, values, line = held
        if not any(METRIC.search(key) for key in values):
            return
        if reading.secondary:
            reading.secondary = False
            reading.values = {key if EVAL_WORD.search(key) else f"eval/{key}": one for key, one in values.items()}
        sink.emit(reading, line)
