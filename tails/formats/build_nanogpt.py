"""build-nanogpt: ``step   250 | loss: 6.5 | lr 2.1e-04 | norm: 0.5 | dt: 402.70ms | tok/sec: 1301946.00``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class BuildNanoGpt(PatternDialect):
    """``validation loss:`` and ``HellaSwag accuracy:`` stand on lines of their own without a step (`generic`)."""

    name = "build-nanogpt"
    tokens = (b"step",)
    pattern = re.compile(r"^step\s+\d+ \| loss: \S+ \| lr \S+ \| norm: ")
    samples = (
        b"validation loss: 10.9522\nHellaSwag accuracy: 2497/10042=0.2487\n"
        b"step     0 | loss: 10.955010 | lr 6.0000e-04 | norm: 15.3420 | dt: 19152.47ms | tok/sec: 27374.43\n"
        b"step     1 | loss: 10.655010 | lr 6.0000e-04 | norm: 12.3420 | dt: 402.70ms | tok/sec: 1301946.00\n",
    )
