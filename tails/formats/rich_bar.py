"""Bars drawn by rich (Lightning's RichProgressBar): ``Epoch 0/9 ━╸━━ 10/1000 0:00:10 • 0:01:30 1.01it/s loss: 2.3``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import EVAL_WORD, METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, clock_seconds, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_BAR = re.compile(
    r"\s*(?P<label>[A-Za-z][\w /]{0,60}?)\s+[━╸╺ ]{4,}\s*(?P<n>\d+)/(?P<total>\d+) (?P<elapsed>\d[\d:]*) • \S+"
    r"(?: [\d.]+\s?(?:it/s|s/it))?(?P<rest>.*)"
)
_EPOCH = re.compile(r"[Ee]poch (\d+)(?:/(\d+))?")
_PAIR = re.compile(rf"(?:^|\s)(?P<key>[A-Za-z_][\w/.-]{{0,80}}): (?P<value>{NUMBER})(?=\s|$)")
_PAIRS = re.compile(rf"\s*(?:[A-Za-z_][\w/.-]{{0,80}}: (?:{NUMBER})\s*){{1,50}}")


class RichBar(Dialect):
    """Metrics stand behind the bar or wrapped into the line below; each step is given once, as it was drawn last."""

    name = "rich bar"
    tokens = (b"\xe2\x94\x81", b"\xe2\x95\xb8")
    samples = (
        "Epoch 0/9  ━╸━━━━━━━━ 10/1000 0:00:10 • 0:16:30 1.01it/s v_num: 0.000 train_loss: 2.250\n"
        "Epoch 0/9  ━╸━━━━━━━━ 11/1000 0:00:11 • 0:16:29 1.01it/s v_num: 0.000\n train_loss: 2.125\n".encode(),
    )

    def __init__(self) -> None:
        self._held: tuple[Reading, dict[str, float | None], Line] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the line below may go on with the metrics."""
        return self._held is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _BAR.fullmatch(line.text)
        if match is None:
            if self._held is None:
                return False
            if _PAIRS.fullmatch(line.text):
                self._add(line.text)
                return True
            if line.text.strip():
                self.flush(sink)
            return False
        if EVAL_WORD.search(match["label"]) or "anity" in match["label"]:
            self.flush(sink)
            return True
        self._frame(match, line, sink)
        return True

    def _frame(self, match: re.Match[str], line: Line, sink: Sink) -> None:
        values: dict[str, float | None] = {}
        reading = Reading(values, float(match["n"]), "bar", float(match["total"]), dialect=self.name)
        epoch = _EPOCH.match(match["label"])
        if epoch is not None:
            reading.epoch = float(epoch[1])
            reading.epochs = float(epoch[2]) + 1 if epoch[2] else None  # counted from 0
        reading.time = clock_seconds(match["elapsed"]) if line.prefix.time is None else None
        if self._held is not None and (self._held[0].step, self._held[0].epoch) != (reading.step, reading.epoch):
            self.flush(sink)
        self._held = (reading, values, line)
        self._add(match["rest"])

    def _add(self, text: str) -> None:
        if self._held is not None:
            found = {pair["key"]: to_number(pair["value"]) for pair in _PAIR.finditer(text) if pair["key"] != "v_num"}
            self._held[1].update(found)

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._held = self._held, None
        if held is not None and any(METRIC.search(key) for key in held[1]):
            sink.emit(held[0], held[2])
