"""llama.cpp's own training: ``train: [==>   ] data=0000007/0001000 loss=2.50000±0.00500 acc=10.00±1.00%``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import fields_of
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape, read_once

_BAR = re.compile(
    r"\s{0,8}(?P<what>train|val|eval|test):\s{0,8}\[[=> ]{0,200}\]\s{1,8}data=(?P<n>\d{1,12})/(?P<N>\d{1,12})\b"
)


class Ggml(Dialect):
    """The step is the batch, the epochs before added up; what a bar of held-out data says is marked so."""

    name = "ggml"
    tokens = (b"data=",)
    samples = (
        "train: [===>    ] data=0000001/0000200 loss=3.25000±0.00500 acc=10.00±1.00% t=00:00:01 ETA=00:10:00 \r"
        "train: [===>    ] data=0000002/0000200 loss=3.12500±0.00500 acc=10.00±1.00% t=00:00:02 \n".encode(),
    )

    def __init__(self) -> None:
        self._epoch = 1.0
        self._newest = 0.0

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _BAR.match(line.text)
        if match is None:
            return False
        scanned = line.scan()
        fields = fields_of([pair for pair in scanned.pairs if pair.start >= match.end()], [])
        reading = read_once(line.text, Shape(fields), self.name)
        if match["what"] != "train":
            reading.values = {f"eval/{key}": value for key, value in reading.values.items()}
            reading.step = sink.step
            sink.emit(reading, line)
            return True
        place = float(match["n"])
        self._epoch += place < self._newest
        self._newest = place
        reading.step, reading.step_key, reading.total = place, "data", float(match["N"])
        reading.epoch = self._epoch
        sink.emit(reading, line)
        return True
