"""Composer and LLM Foundry: a header ``[epoch=1][batch=10/4800]:`` and an indented line for each metric."""

from __future__ import annotations

import re

from trainmon.tails.formats.multi_line import MultiLine
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.template import Reading

_LOGGER = r"(?:[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,6}: )?"  # composer.loggers.console: , which prefixes do not know
_HEADER = re.compile(_LOGGER + r"\s*(?:\[epoch=(\d+)(?:/(\d+))?\])?\[batch=(\d+)(?:/(\d+))?\]:\s*")
_EVAL = re.compile(_LOGGER + r"\s*\[Eval batch=\d+/\d+\]")


class Composer(MultiLine):
    """``	 Train loss/train/total: 12.01`` under the header. With an epoch the batch counts inside it."""

    name = "composer"
    tokens = (b"[batch=", b"[eval batch=")
    metric = re.compile(
        rf"{_LOGGER}\s+(?:Train |Eval )?(?P<key>[A-Za-z][^:\n]{{0,120}}?): (?P<value>{NUMBER})(?P<unit>%)?\s*"
    )
    other = re.compile(rf"{_LOGGER}\s+(?:Train|Eval) [^:\n]{{1,120}}: .*")
    samples = (
        b"[batch=1/4800]:\n\t Train time/batch: 0\n\t Train loss/train/total: 12.0123\n"
        b"\t Train time/remaining: 1:02:03\n"
        b"[batch=2/4800]:\n\t Train time/batch: 1\n\t Train loss/train/total: 11.9000\n",
    )

    def header(self, text: str, metrics: dict[str, float | None]) -> Reading | None:
        """``[epoch=1][batch=10/4800]:``."""
        match = _HEADER.fullmatch(text)
        if match is None:
            return Reading(metrics) if _EVAL.match(text) else None
        reading = Reading(metrics, float(match[3]), "batch", float(match[4]) if match[4] else None)
        if match[1] and match[4]:
            reading.epoch, reading.epochs = float(match[1]), float(match[2]) if match[2] else None
        return reading
