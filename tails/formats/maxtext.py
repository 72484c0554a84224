"""MaxText: ``completed step: 29, seconds: 0.779, TFLOP/s/device: 324.4, ..., loss: 12.97``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class MaxText(PatternDialect):
    """Behind a glog prefix. The time of a step is that of its dispatch, not of its work."""

    name = "maxtext"
    tokens = (b"completed step",)
    pattern = re.compile(r"^completed step: \d+, ")
    samples = (
        b"I0813 17:29:23.920936 138898490059648 metric_logger.py:226] completed step: 0, seconds: "
        b"54.322, TFLOP/s/device: 4.653, "
        b"Tokens/s/device: 301.611, total_weights: 131072, loss: 12.978, lm_loss: 12.978, perplexity: 432670.719\n",
    )
