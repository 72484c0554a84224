"""torchtune: the loss in a bar's label, ``1|20|Loss: 2.31:   2%|2  | 20/1000 [00:20<16:40, 1.0s/it]``."""

from __future__ import annotations

import re

from trainmon.tails.formats.bar import read_bar
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

LABEL = re.compile(rf"\s*(?P<epoch>\d+)\|(?P<step>\d+)\|Loss: (?P<loss>{NUMBER})")


class TorchTune(Dialect):
    """The first two numbers are epoch and global step; each step is given once, as it was drawn last."""

    name = "torchtune"
    tokens = (b"|loss:",)
    samples = (
        b"\r1|20|Loss: 2.31:   2%|2  | 20/1000 [00:20<16:40, 1.0s/it]"
        b"\r1|21|Loss: 2.30:   2%|2  | 21/1000 [00:21<16:40, 1.0s/it]\n",
    )

    def __init__(self) -> None:
        self._held: tuple[Reading, Line] | None = None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = LABEL.match(line.text)
        if match is None:
            return False
        values = {"Loss": to_number(match["loss"]), "epoch": float(match["epoch"])}
        bar = read_bar(line.text)
        reading = Reading(values, float(match["step"]), "step", dialect=self.name, time=bar.elapsed if bar else None)
        if self._held is not None and self._held[0].step != reading.step:
            self.flush(sink)
        self._held = (reading, line)
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._held = self._held, None
        if held is not None:
            sink.emit(*held)
