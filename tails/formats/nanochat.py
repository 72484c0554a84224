"""nanochat: ``step 00029/05742 (0.51%) | loss: 9.1 | lrm: 1.00 | dt: 45.8ms | tok/sec: 22,884 | bf16_mfu: 38.1``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect


class NanoChat(PatternDialect):
    """Base training, mid-training and SFT write the same line, the later stages without a total."""

    name = "nanochat"
    tokens = (b"step",)
    pattern = re.compile(r"^(?:step \d+(?:/\d+)? \([\d.]+%\) \| |Step \d+ \| Validation bpb)")
    samples = (
        b"Step 00000 | Validation bpb: 3.1690\n"
        b"step 00000/05742 (0.00%) | loss: 10.397083 | lrm: 1.00 | dt: 113785.11ms | tok/sec: 9,215 | "
        b"bf16_mfu: 16.05 | "
        b"epoch: 1 | total time: 0.00m\n",
        b"step 00001 (0.17%) | loss: nan | lrm: 1.00 | dt: 5.20ms | tok/sec: 24,595 | mfu: 0.00 | "
        b"epoch: 1 | total time: 0.00m\n",
    )
