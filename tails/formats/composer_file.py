"""Composer's FileLogger: one metric a line, under its batch: ``[metric][batch=5]: loss/train/total: 3.2``."""

from __future__ import annotations

import re

from trainmon.tails.formats.config_facts import config_facts
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, is_absent, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading

_METRIC = re.compile(rf"\[metric\]\[batch=(?P<batch>\d+)\]: (?P<key>[^:\n]{{1,200}}): (?P<value>{NUMBER})\s*")
_SETTING = re.compile(rf"\[hyperparameter\]: (?P<key>[^:\n]{{1,200}}): (?P<value>{NUMBER})\s*")
_OWN = re.compile(r"\[(?:metric|trace|hyperparameter|table)\](?:\[batch=\w+\])?: ")
_MAX_METRICS = 100_000


class ComposerFile(Dialect):
    """The lines of one batch make one record; what lies between them (``[stdout]: ...``) ends none."""

    name = "composer file"
    tokens = (b"[metric]", b"[hyperparameter]", b"[trace]")
    samples = (
        b"[hyperparameter]: max_steps: 200 \n"
        b"[metric][batch=1]: time/batch: 1 \n[metric][batch=1]: loss/train/total: 12.0123 \n"
        b"[metric][batch=2]: time/batch: 2 \n[metric][batch=2]: loss/train/total: 11.9000 \n",
    )

    def __init__(self) -> None:
        self._held: tuple[Reading, dict[str, float | None], Line] | None = None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if setting := _SETTING.fullmatch(line.text):
            for fact, value in config_facts({setting["key"]: to_number(setting["value"])}, {}):
                sink.fact(fact, value, line.line_no)
            return True
        match = _METRIC.fullmatch(line.text)
        if match is None:
            return _OWN.match(line.text) is not None
        batch = float(match["batch"])
        if self._held is None or self._held[0].step != batch or len(self._held[1]) >= _MAX_METRICS:
            self.flush(sink)
            values: dict[str, float | None] = {}
            self._held = (Reading(values, batch, "batch", dialect=self.name), values, line)
        if not is_absent(match["value"]):
            self._held[1][match["key"]] = to_number(match["value"])
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        held, self._held = self._held, None
        if held is not None and held[1]:
            sink.emit(held[0], held[2])
