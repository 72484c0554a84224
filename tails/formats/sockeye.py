"""Sockeye's speed lines: ``E=0 B=50<tab>s/sec=900.5 tok/sec=21000.25 u/sec=7.5<tab>ppl=85.5``."""

from __future__ import annotations

import re

from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_LINE = re.compile(r"\s{0,8}E=(\d{1,6}) B=(\d{1,12})(?: [uU]=(\d{1,12}))?\s(?=.{0,200}=)")
_PAIR = re.compile(r"(?<!\S)([A-Za-z][\w/.-]{0,60})=([-+.\w]{1,40})(?=\s|$)")


class Sockeye(Dialect):
    """The step is the update where it is told, or else the batch, which may begin again in each epoch."""

    name = "sockeye"
    tokens = (b"tok/sec=",)
    samples = (
        b"[2021-05-01:10:00:00:INFO:sockeye.training_model:__call__] E=0 B=50\ts/sec=900.5 tok/sec=21000.25 u/sec=7.5"
        b"\tppl=85.5\n"
        b"[2021-05-01:10:00:07:INFO:sockeye.training_model:__call__] E=0 B=100\ts/sec=905.5 tok/sec=21100.5 u/sec=7.25"
        b"\tppl=60.25\n",
    )

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _LINE.search(line.text[:200])
        if match is None or (match.start() and line.text[match.start() - 1] not in " ]"):
            return False
        epoch, batch, update = match.groups()
        values: dict[str, float | None] = {}
        for key, written in _PAIR.findall(line.text, match.end()):
            try:
                values[key] = to_number(written)
            except ValueError:
                continue  # a word
        if not values:
            return False
        values["epoch"] = float(epoch)
        in_epoch = None if update else float(epoch)
        key = "updates" if update else "batch"
        sink.emit(Reading(values, float(update or batch), key, epoch=in_epoch, dialect=self.name), line)
        return True
