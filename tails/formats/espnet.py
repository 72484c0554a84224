"""ESPnet: ``1epoch:train:1-100batch: iter_time=0.01, ..., loss=67.8, grad_norm=12.3, ...``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_STRETCH = re.compile(r"(?:^|\s)(\d+)epoch:train:(\d+)-(\d+)batch: ")
_WITHIN = 200
# These names mean something else elsewhere: here they are the wait for the batch, and the whole step.
_NAMES = {name: f"espnet/{name}" for name in ("iter_time", "train_time")}


class EspNet(FlatDialect):
    """The step is the last batch of the stretch, counted inside the epoch."""

    name = "espnet"
    tokens = (b"epoch:train:",)
    samples = (
        b"[gpu01] 2024-01-01 10:00:00,123 (trainer:732) INFO: 1epoch:train:1-100batch: iter_time=0.01, loss_ctc=80.5, "
        b"loss=67.5, grad_norm=12.25, optim0_lr0=1.0e-06, train_time=1.5\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        match = _STRETCH.search(line.text[:_WITHIN])
        if match is None:
            return None
        start = match.end()
        scanned = scan(line.text[start:])
        inner: list[tuple[int, int]] = []
        fields = [(_NAMES.get(key, key), (a + start, b + start)) for key, (a, b) in fields_of(scanned.pairs, inner)]
        others = [(a + start, b + start) for a, b in (*scanned.others, *inner)]
        others.append(match.span(2))
        return Shape(fields, others, match.span(3), "batch", epoch=match.span(1))
