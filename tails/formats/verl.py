"""verl and its kin: ``step:101 - actor/pg_loss:-0.682 - actor/grad_norm:1.417 - ...``, some 80 pairs a line."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class Verl(PatternDialect):
    """Behind Ray's ``(TaskRunner pid=1)``."""

    name = "verl"
    tokens = (b"step:",)
    pattern = re.compile(r"^step:\d+ - [\w./@-]+:\S+ - ")
    samples = (
        b"\x1b[36m(TaskRunner pid=14640)\x1b[0m step:101 - global_seqlen/min:3349.000 - actor/pg_loss:-0.682 - "
        b"actor/grad_norm:1.417 - critic/score/mean:0.906 - perf/throughput:326.485\n",
    )
