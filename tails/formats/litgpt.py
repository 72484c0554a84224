"""LitGPT: ``Epoch 1 | iter 16 step 4 | loss train: 11.0, val: n/a | iter time: 3456.02 ms (step) ...``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_STEP = re.compile(r"\bstep (\d+)\b")
_ITER = re.compile(r"\biter (\d+)\b")


class LitGpt(PatternDialect):
    """The step is the optimizer's; ``iter`` counts micro-batches. ``val: `` beside ``loss train:`` is ``loss val``."""

    name = "litgpt"
    tokens = (b"iter",)
    pattern = re.compile(r"\biter \d+ step \d+(?: \| loss train: |: loss \d)")
    samples = (
        b"Epoch 1 | iter 16 step 4 | loss train: 11.02, val: n/a | iter time: 3456.02 ms (step) "
        b"remaining time: 2 days, 3:04:05\n"
        b"Epoch 1 | iter 32 step 8 | loss train: 10.02, val: 9.9 | iter time: 3451.10 ms (step)\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        shape = super().shape(line, sink)
        step, iteration = _STEP.search(line.text), _ITER.search(line.text)
        if shape is None or step is None or iteration is None:
            return None
        fields = [("loss val" if key == "val" else key, span) for key, span in shape.fields if span != step.span(1)]
        shape.fields = [("iter", iteration.span(1)), *fields]
        shape.step, shape.step_key, shape.total = step.span(1), "step", None
        return shape
