"""Keras: ``123/1000 [====>....] - ETA: 3s - loss: 2.3 - accuracy: 0.4`` under ``Epoch 1/5``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_EPOCH = re.compile(r"\s*Epoch (\d+)/(\d+)\s*")
_BAR = re.compile(r"(?:^|[\x08\s])(\d+)/(\d+) (?:\[[=>.]*\]|[━╸╺\s]{4,}|- \d+m?s(?= - ))")
_PAIR = re.compile(rf" - (?P<key>[A-Za-z_]\w*): (?P<value>{NUMBER})(?=[\s\x08(]|[A-Z][a-z]|$)")


class Keras(Dialect):
    """Old and new bars. The step is the place in the epoch plus the epochs before; each is given once."""

    name = "keras"
    tokens = (b"epoch ", b"- eta: ", b"===", b"\xe2\x94\x81", b"s - ")
    samples = (
        b"Epoch 1/2\n 1/3 [=>...] - ETA: 3s - loss: 2.30 - accuracy: 0.10\r 3/3 [=====] - 4s 9ms/step "
        b"- loss: 2.10 - accuracy: 0.20\n"
        b"Epoch 2/2\n 3/3 [=====] - 4s 9ms/step - loss: 1.90 - accuracy: 0.30 - val_loss: 2.0\n",
    )

    def __init__(self) -> None:
        self._epoch = 0.0
        self._epochs: float | None = None
        self._held: tuple[Reading, Line] | None = None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _EPOCH.fullmatch(line.text)
        if match is not None:
            self.flush(sink)
            self._epoch, self._epochs = float(match[1]), float(match[2])
            sink.is_telling = True
            return False  # what stands below may be another dialect's
        bars = list(_BAR.finditer(line.text))
        if not bars or "loss" not in line.text:
            return False
        ends = [bar.start() for bar in bars[1:]] + [len(line.text)]
        given = [self._frame(bar, end, line, sink) for bar, end in zip(bars, ends, strict=True)]
        return any(given)

    def _frame(self, bar: re.Match[str], end: int, line: Line, sink: Sink) -> bool:
        """Takes one drawing of the bar; drawn over with backspaces, there are many on a line."""
        values = {pair["key"]: to_number(pair["value"]) for pair in _PAIR.finditer(line.text, bar.end() - 1, end)}
        if not any(METRIC.search(key) for key in values):
            return False
        reading = Reading(values, float(bar[1]), "step", float(bar[2]), dialect=self.name)
        if self._epoch:
            reading.epoch, reading.epochs = self._epoch, self._epochs
        held = self._held
        if held is not None and (held[0].step, held[0].epoch) != (reading.step, reading.epoch):
            self.flush(sink)
        self._held = (reading, line)
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._held = self._held, None
        if held is not None:
            sink.emit(*held)
