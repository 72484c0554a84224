"""wenet: ``TRAIN Batch 4/2037 loss 12.6 loss_att 10.9 lr 0.0003 rank 0``, epoch and batch around one slash."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect, shape_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_PLACE = re.compile(
    r"(?P<set>TRAIN|CV) (?:\| ?steps/sec [\d.]+ ?\| ?)?Batch (?P<epoch>\d+)/(?P<batch>\d+)(?= (?:loss|acc))"
)
_WITHIN = 200


class WeNet(FlatDialect):
    """The batch counts inside an epoch of untold length; ``CV`` lines are held-out data's, at the newest step."""

    name = "wenet"
    tokens = (b"train batch ", b"cv batch ", b"| batch ", b"|batch ")
    samples = (
        b"2023-01-30 18:47:07,107 DEBUG TRAIN Batch 0/100 loss 80.5 loss_att 90.5 loss_ctc 70.5 lr 0.0001 rank 0\n"
        b"2023-01-30 18:48:07,107 DEBUG TRAIN Batch 0/200 loss 60.5 loss_att 70.5 loss_ctc 50.5 lr 0.0002 rank 0\n"
        b"2023-01-30 18:49:07,107 DEBUG CV Batch 0/100 loss 58.5 loss_att 68.5 history loss 58.0 rank 0\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        place = _PLACE.search(line.text[:_WITHIN])
        shape = shape_of(line, needs_step=False) if place is not None else None
        if shape is None or place is None:
            return None
        inside = [place.span("epoch"), place.span("batch")]
        shape.fields = [field for field in shape.fields if field[1][0] >= place.end()]
        shape.others = [span for span in shape.others if span not in inside]
        shape.total = shape.epochs = None
        shape.step, shape.epoch, shape.step_key = place.span("batch"), place.span("epoch"), "batch"
        if place["set"] == "CV":
            shape.others += inside
            shape.step = shape.epoch = None
            shape.step_key = ""
            shape.fields = [(f"eval/{key}", span) for key, span in shape.fields]
        return shape
