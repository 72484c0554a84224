"""Steps counted inside an epoch: Swin's ``Train: [0/10][290/1251]``, MiniMind's ``Epoch:[1/1](300/39695)``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class EpochBatch(PatternDialect):
    """The step is ``epoch * batches + batch``; an epoch that is counted from 1 is taken so."""

    name = "epoch/batch"
    tokens = (b"epoch", b"train")
    pattern = re.compile(r"(?:[Tt]rain|[Ee]poch)\w*:?\s*\[\s*\d+\s*/\s*\d+\s*\],?\s*(?:\w+:?\s*)?[\[(]\s*\d+\s*/\s*\d+")
    samples = (
        b"[2023-11-09 22:24:27 vit] (main.py 506): INFO Train: [0/10][0/1251]\teta 3:10:53 lr "
        b"0.000000\ttime 9.1551 (9.1551)\t"
        b"loss 6.9080 (6.9080)\tgrad_norm 0.0390 (0.0390/0.0000)\tmem 48414MB\n",
        b"Epoch:[1/1](10/39695), loss: 8.5371, logits_loss: 8.5371, aux_loss: 0.0000, lr: 0.00050000, "
        b"epoch_time: 130.0min\n",
    )
