"""Lines of three words, step, name and value: ``250 train 3.28``, ``250 val 3.31`` (build-nanogpt's log file)."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_NAMES = {
    "train": "train loss",
    "trl": "train loss",
    "val": "val loss",
    "valid": "val loss",
    "tel": "val loss",
    "hella": "hellaswag accuracy",
    "hellaswag": "hellaswag accuracy",
    "loss": "loss",
}
_LINE = re.compile(rf"\s*(?P<step>\d{{1,9}}) (?P<name>{'|'.join(_NAMES)}) (?P<value>{NUMBER})\s*", re.IGNORECASE)


class Triples(FlatDialect):
    """One value a line."""

    name = "step name value"
    tokens = tuple(f" {name} ".encode() for name in _NAMES)
    samples = (b"0 val 10.9500\n0 hella 0.2450\n0 train 10.950000\n1 train 10.650000\n2 train 10.350000\n",)

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        match = _LINE.fullmatch(line.text)
        if match is None:
            return None
        return Shape([(_NAMES[match["name"].lower()], match.span("value"))], [], match.span("step"), "step")
