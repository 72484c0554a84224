"""Every real log of the corpus, read and judged as `export` and `check` do, against what is known to be true of it.

The corpus is not part of the repository; without it these tests skip. `EXPLAINED` lists where the product and
facts.json differ and why that is right; an entry that no longer differs fails, so that the list stays honest.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.corpus import compare, read

CORPUS = Path(os.environ.get("TRAINMON_CORPUS", Path(__file__).parents[2] / "shared" / "corpus"))
FACTS = json.loads((CORPUS / "facts.json").read_text(encoding="utf-8")) if (CORPUS / "facts.json").exists() else {}

# file -> (the words that start each line that may differ, why)
EXPLAINED: dict[str, tuple[tuple[str, ...], str]] = {
    "stdout/colossalai__chatgpt-bench.log": (("root_error",), "the last launch dies of the NameError, not of Ctrl-C"),
    "stdout/torchtitan__sft-orchestrator-multirun.log": (
        ("loss", "grad_norm", "root_error"),
        "two runs write into one file: the second's rows are charted apart, and its launcher's last word is `Killed`",
    ),
    "stdout/torchtitan__vlm-pp4-spikes.log": (("root_error",), "an error at interpreter exit is no cause"),
    "stdout/megatron-deepspeed__nccl-timeout-hosts.log": (
        ("root_error",),
        "two ranks had died of a FileNotFoundError, ten minutes before those that waited for them gave up",
    ),
    "structured/engram__bom_iterations.jsonl": (("root_error",), "two kinds of failure, a text each"),
    "structured/verifier-reward__xtune_seed8.jsonl": (("events",), "nothing in the file says so in words"),
    "structured/minimind-fbtp__dpo_long.csv": (("loss: last",), "steps that begin anew each epoch are added up"),
    "structured/worldmodel__tb_scalar_export.csv": (
        ("verdict",),
        "one column called Value: what it measures is not in the file, so nothing can be judged",
    ),
    "structured/qiu023-titan__vlm-447m-pretrain__20260510-1808__events.out.tfevents.1778436511.dfbfb7339589"
    ".1728957.0": (("verdict",), "the loss does step up by 16% at 4501 and stays there: METRICS.md makes that a WARN"),
}


@pytest.mark.skipif(not FACTS, reason="the corpus of real logs is not on this machine")
@pytest.mark.parametrize("name", sorted(FACTS) or ["none"])
def test_a_real_log_is_read_and_judged_as_it_is(name: str) -> None:
    allowed, _ = EXPLAINED.get(name, ((), ""))
    lines = list(compare(FACTS[name], read(CORPUS / name, ("loss.train", "grad.norm"))))
    assert [line for line in lines if not line.startswith(allowed or ("\0",))] == []
    assert bool(lines) == bool(allowed), "EXPLAINED says this differs, and it does not any more"
