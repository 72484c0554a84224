"""DeepSpeed's own lines beside a trainer's: a second account of the steps, used when there is no first one."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_STEPS = re.compile(r"steps: (\d+) loss: .* iter time \(s\): ")
_ENGINE = re.compile(r"step=(\d+), skipped=\d+, lr=\[")
_TIMER = re.compile(r"epoch=\d+/micro_step=\d+/global_step=(\d+), ")
_MOMENTUM = "mom="  # its numbers, and those behind them, are none of the run's


class DeepSpeed(FlatDialect):
    """``steps: N loss: L iter time (s): ...``, ``step=N, skipped=M, lr=[...]``, ``epoch=../global_step=N, ...``."""

    name = "deepspeed"
    secondary = True
    tokens = (b"iter time (s)", b"skipped=", b"global_step=")
    samples = (
        b"steps: 1 loss: 12.6360 iter time (s): 14.753 samples/sec: 1.084\n"
        b"steps: 2 loss: 12.1360 iter time (s): 14.653 samples/sec: 1.094\n",
        b"[2025-08-25 15:14:42,017] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=1, "
        b"lr=[1e-05], mom=[[0.8, 0.999]]\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        text = line.text
        match = _STEPS.match(text) or _ENGINE.match(text) or _TIMER.match(text)
        if match is None:
            return None
        scanned = line.scan()
        others = list(scanned.others)
        start, momentum = match.start(1), text.find(_MOMENTUM)
        rest = []
        for pair in scanned.pairs:
            is_behind = 0 <= momentum <= pair.start - len(_MOMENTUM)
            if pair.start > start and not is_behind and pair.key != "epoch":
                rest.append(pair)
            elif pair.start != start:
                others.append((pair.start, pair.end))
        return Shape(fields_of(rest, others), others, match.span(1), "global_step")
