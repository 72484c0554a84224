"""fairseq: the means over an epoch, ``train | epoch 001 | loss 9.8 | ... | num_updates 1100 | ...``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class Fairseq(PatternDialect):
    """A second account beside ``train_inner``, and the only one where that is not printed."""

    name = "fairseq"
    secondary = True
    tokens = (b"| loss ",)
    pattern = re.compile(r"^(?:train \| )?epoch \d+ \| loss ")
    samples = (
        b"2021-05-01 10:00:00 | INFO | train | epoch 001 | loss 9.875 | ppl 940.1 | wps 41000 | num_updates 1000 | "
        b"lr 0.000125 | gnorm 2.125 | wall 90\n"
        b"2021-05-01 11:00:00 | INFO | train | epoch 002 | loss 8.75 | ppl 430.5 | wps 41000 | num_updates 2000 | "
        b"lr 0.00025 | gnorm 1.5 | wall 180\n",
        b"| epoch 001 | loss 9.875 | ppl 940.1 | wps 41000 | num_updates 1000 | lr 0.000125 | gnorm 2.125\n",
    )
