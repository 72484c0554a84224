"""Darknet: ``12: 3.21, 3.4 avg loss, 0.001 rate, 2.1 seconds, 768 images``; older ones say ``avg`` alone."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_LINE = re.compile(
    rf"\s*(?:(?P<step>\d{{1,9}}): )?(?P<loss>{NUMBER}), (?P<mean>{NUMBER}) avg(?: loss)?, "
    rf"(?P<rate>{NUMBER}) rate, (?P<seconds>{NUMBER}) seconds, (?P<images>\d{{1,12}}) images\b.{{0,200}}"
)


class Darknet(Dialect):
    """The number before the colon, which looks like srun's label, is the batch; the mean is over the last ones."""

    name = "darknet"
    tokens = (b" rate, ",)
    samples = (
        b"1: 3.25, 3.25 avg loss, 0.001000 rate, 2.113 seconds, 64 images, 3.2 hours left\nLoaded: 0.000045 seconds\n"
        b"2: 3.125, 3.237 avg loss, 0.001000 rate, 2.1 seconds, 128 images, 3.1 hours left\n",
    )

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _LINE.fullmatch(line.text)
        step = (match["step"] or (line.prefix.rank if line.prefix.is_bare else "")) if match is not None else ""
        if match is None or not step:
            return False
        keys = {"loss": "loss", "mean": "avg loss", "rate": "learning rate", "seconds": "step time (s)"}
        values = {key: to_number(match[group]) for group, key in keys.items()}
        values["images"] = float(match["images"])
        if not match["step"]:
            line = replace(line, prefix=replace(line.prefix, rank=""))
        sink.emit(Reading(values, float(step), "batch", dialect=self.name), line)
        return True
