"""nanoGPT: ``iter 250: loss 3.2, time 401.77ms, mfu 37.80%`` and ``step 250: train loss 3.1, val loss 3.2``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape


class NanoGpt(PatternDialect):
    """The estimate of the train loss beside a validation loss is an evaluation: ``eval/train loss``."""

    name = "nanogpt"
    tokens = (b"iter ", b"val loss")
    pattern = re.compile(r"^(?:iter \d+: loss |step \d+: train loss )")
    samples = (
        b"step 0: train loss 10.8512, val loss 10.8424\niter 0: loss 10.8662, time 58313.41ms, mfu -100.00%\n"
        b"iter 1: loss 10.1662, time 4785.20ms, mfu 37.80%\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        shape = super().shape(line, sink)
        if shape is not None and line.text.startswith("step"):
            shape.fields = [(f"eval/{key}" if key == "train loss" else key, span) for key, span in shape.fields]
        return shape
