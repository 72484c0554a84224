"""OLMo and OLMo-core: a header ``[step=1/1000,epoch=1]`` and an indented line for each metric."""

from __future__ import annotations

import re

from trainmon.tails.formats.multi_line import MultiLine
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.template import Reading

_HEADER = re.compile(r"\s*\[step=([\d,]+)(?:/([\d,]+))?(?:,\s*epoch=(\d+)(?:/\d+)?)?(?:,[^\]]*)?\]\s*")


class OlmoCore(MultiLine):
    """``    train/CE loss=11.20`` under the header."""

    name = "olmo-core"
    tokens = (b"[step=", b"eval", b"validation")
    metric = re.compile(rf"\s+(?P<key>[A-Za-z][^=\n]{{0,120}}?)\s*=\s*(?P<value>{NUMBER})(?P<unit>%)?\s*")
    other = re.compile(r"\s+[A-Za-z][^=\n]{0,120}=\S+\s*")
    samples = (
        b"2025-03-01 10:00:00 host olmo_core.train.callbacks.console_logger:83 INFO [step=1/1000,epoch=1]\n"
        b"    optim/LR (group 0)=4.0e-06\n    optim/total grad norm=2.5\n"
        b"    train/CE loss=11.20\n    throughput/device/TPS=9,120\n"
        b"2025-03-01 10:00:09 host olmo_core.train.callbacks.console_logger:83 INFO [step=2/1000,epoch=1]\n"
        b"    optim/LR (group 0)=8.0e-06\n    optim/total grad norm=nan\n    train/CE loss=11.10\n",
    )

    def header(self, text: str, metrics: dict[str, float | None]) -> Reading | None:
        """``[step=1/1000,epoch=1]``."""
        match = _HEADER.fullmatch(text)
        if match is None:
            return None
        if match[3]:
            metrics["epoch"] = float(match[3])
        total = float(match[2].replace(",", "")) if match[2] else None
        return Reading(metrics, float(match[1].replace(",", "")), "step", total)
