"""llama.cpp's own training: ``train: [==>   ] data=0000007/0001000 loss=2.50000±0.00500 acc=10.00±1.00%``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_BAR = re.compile(
    r"\s{0,8}(?P<what>train|val|eval|test):\s{0,8}\[[=> ]{0,200}\]\s{1,8}data=(?P<n>\d{1,12})/(?P<N>\d{1,12})\b"
)


class Ggml(FlatDialect):
    """The step is the batch of the epoch; what a bar of held-out data says is marked so."""

    name = "ggml"
    tokens = (b"data=",)
    samples = (
        "train: [===>    ] data=0000001/0000200 loss=3.25000±0.00500 acc=10.00±1.00% t=00:00:01 ETA=00:10:00 \r"
        "train: [===>    ] data=0000002/0000200 loss=3.12500±0.00500 acc=10.00±1.00% t=00:00:02 \n".encode(),
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002
        """The shape of `line`, None when it is not this dialect's."""
        match = _BAR.match(line.text)
        if match is None:
            return None
        scanned = line.scan()
        others = list(scanned.others)
        fields = fields_of([pair for pair in scanned.pairs if pair.start >= match.end()], others)
        if match["what"] != "train":
            fields = [(f"eval/{key}", span) for key, span in fields]
        return Shape(fields, others, match.span("n"), "data", match.span("N"))
