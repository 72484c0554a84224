"""modded-nanogpt and parameter-golf: ``step:28/20000 train_loss:6.5404 train_time:362ms step_avg:120.70ms``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class ModdedNanoGpt(PatternDialect):
    """``step_avg`` is a running mean and nan in the first steps. The script is often dumped at the head."""

    name = "modded-nanogpt"
    tokens = (b"step:",)
    pattern = re.compile(r"^step:\d+/\d+ (?:train|val)_loss:")
    samples = (
        b"step:0/4578 val_loss:10.8258 train_time:0ms step_avg:nanms\n"
        b"step:1/4578 train_loss:10.8258 train_time:3347ms step_avg:nanms\n"
        b"step:13/4578 train_loss:6.5404e+00 train_time:362ms step_avg:120.70ms\n",
    )
