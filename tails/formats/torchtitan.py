"""torchtitan: ``step: 10  loss: 5.95  grad_norm: 306.03  memory: 7.12GiB(22.71%)  tps: 120  ...``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape


class TorchTitan(PatternDialect):
    """Coloured, behind ``[rank0]:[titan] 2026-05-03 02:00:31,461 - root - INFO -``. Its ``tps`` are one card's."""

    name = "torchtitan"
    tokens = (b"step",)
    pattern = re.compile(r"^(?:validate )?step:\s+\d+\s+(?:\w+:\s+\S+\s+)*?loss:\s+\S+.*\s(?:memory|tps):\s")
    samples = (
        b"[rank6]:[titan] 2026-05-03 02:00:31,461 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  5.95021  "
        b"\x1b[38;2;180;60;0mgrad_norm: 306.0339  \x1b[38;2;54;234;195mmemory:  7.12GiB(22.71%)  \x1b[34mtps: 120  "
        b"\x1b[36mtflops: 0.73  \x1b[35mmfu: 0.23%\x1b[39m\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        shape = super().shape(line, sink)
        if shape is not None and any(key == "tps" for key, _ in shape.fields):
            sink.fact("framework", "torchtitan", line.line_no)
        return shape
