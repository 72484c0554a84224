"""NeMo 2: ``Training epoch 0, iteration 9/999 | lr: ... | global_step: 9 | reduced_train_loss: 10.1 | ...``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape


class NemoLine(PatternDialect):
    """The number behind the slash is the last iteration, counted from 0."""

    name = "nemo"
    tokens = (b"training epoch ",)
    pattern = re.compile(r"^Training epoch \d+, iteration \d+/(\d+) \| ")
    samples = (
        b"Training epoch 0, iteration 0/99 | lr: 1.5e-07 | global_batch_size: 32 | global_step: 0 | "
        b"reduced_train_loss: 11.03 | train_step_timing in s: 12.25\n"
        b"Training epoch 0, iteration 1/99 | lr: 3e-07 | global_batch_size: 32 | global_step: 1 | "
        b"reduced_train_loss: 11.01 | train_step_timing in s: 1.25\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        shape = super().shape(line, sink)
        match = self.pattern.match(line.text)
        if shape is not None and match is not None:
            shape.total = None
            sink.fact("total_steps", float(match[1]) + 1, line.line_no)
        return shape
