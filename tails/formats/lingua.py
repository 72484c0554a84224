"""Meta Lingua: ``step: 1  acc: 0  loss:  7.4792  grad: 1.90e+01  flops: ..  wps: ..  iter: 2.4  ...  mem: 43%``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class Lingua(PatternDialect):
    """Here ``iter`` is the seconds of an iteration, not its number."""

    name = "lingua"
    tokens = (b"step:",)
    pattern = re.compile(r"^step:\s+\d+\s+acc:\s+\d+\s+loss:")
    samples = (
        b"0: INFO    25-07-08 22:20:26.749799 - 0:00:45 - step: 1  acc: 0  loss:  7.4792  grad: "
        b"1.90e+01  flops: 1.01e+14  "
        b"wps: 1.33e+03  iter:  2.4235  data: 0.01  lr: 0.00e+00  mem: 43%  pow: 298.228 W\n",
    )
