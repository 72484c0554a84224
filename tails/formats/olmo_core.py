"""OLMo and OLMo-core: a header ``[step=1/1000,epoch=1]`` and an indented line for each metric."""

from __future__ import annotations

import re

from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_HEADER = re.compile(r"\s*\[step=([\d,]+)(?:/([\d,]+))?(?:,\s*epoch=(\d+)(?:/\d+)?)?(?:,[^\]]*)?\]\s*")
_METRIC = re.compile(rf"\s+(?P<key>[A-Za-z][^=\n]{{0,120}}?)\s*=\s*(?P<value>{NUMBER})(?P<unit>%)?\s*")
_OTHER_METRIC = re.compile(r"\s+[A-Za-z][^=\n]{0,120}=\S+\s*")
_MAX_METRICS = 100_000


class OlmoCore(Dialect):
    """A record of several lines: held until a line comes that is no metric."""

    name = "olmo-core"
    tokens = (b"[step=",)
    samples = (
        b"2025-03-01 10:00:00 host olmo_core.train.callbacks.console_logger:83 INFO [step=1/1000,epoch=1]\n"
        b"    optim/LR (group 0)=4.0e-06\n    optim/total grad norm=2.5\n    train/CE loss=11.20\n    "
        b"throughput/device/TPS=9,120\n"
        b"2025-03-01 10:00:09 host olmo_core.train.callbacks.console_logger:83 INFO [step=2/1000,epoch=1]\n"
        b"    optim/LR (group 0)=8.0e-06\n    optim/total grad norm=nan\n    train/CE loss=11.10\n",
    )

    def __init__(self) -> None:
        self._open: tuple[Reading, dict[str, float | None], Line] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a record is begun."""
        return self._open is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if self._open is not None:
            _, values, _ = self._open
            match = _METRIC.fullmatch(line.text)
            if match is not None and len(values) < _MAX_METRICS:
                key = f"{match['key']} (%)" if match["unit"] else match["key"]
                values[key] = to_number(match["value"]) if match["value"] not in ("N/A", "n/a") else None
                return True
            if _OTHER_METRIC.fullmatch(line.text):
                return True
            self.flush(sink)
        match = _HEADER.fullmatch(line.text)
        if match is None:
            return False
        metrics: dict[str, float | None] = {"epoch": float(match[3])} if match[3] else {}
        step = float(match[1].replace(",", ""))
        total = float(match[2].replace(",", "")) if match[2] else None
        self._open = (Reading(metrics, step, "step", total, dialect=self.name), metrics, line)
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._open = self._open, None
        if held is not None:
            reading, _, line = held
            sink.emit(reading, line)
