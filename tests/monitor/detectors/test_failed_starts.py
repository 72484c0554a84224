"""Starts that died before their first step are told of beside the attempts, which have steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.monitor.judge import judge

HEAD = "torchrun --nproc_per_node 8 train.py\n"
DEATH = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nImportError: no libcudart\n'
WARNING = 'Traceback (most recent call last):\n  File "log.py", line 3, in send\nOSError: cannot reach the tracker\n'
BANNER = "[INFO|trainer.py:2134] 2024-05-01 10:00:00,000 >> ***** Running training *****\n"


def steps(first: int, last: int) -> str:
    return "".join(f"step {step} | loss {3 - step / 200:.4f} | lr 1e-4\n" for step in range(first, last + 1))


ONE = "1 attempt; a start died before a first step (it: ImportError: no libcudart)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD + steps(1, 60), "1 attempt"),
        (HEAD + DEATH + HEAD + steps(1, 60), ONE),
        (
            HEAD + steps(1, 60) + DEATH + HEAD + DEATH + HEAD + DEATH + HEAD + steps(41, 90),
            "2 attempts, 1 resumed, 20 steps trained again; 2 starts died before a first step"
            " (the last: ImportError: no libcudart)",
        ),
        (HEAD + WARNING + steps(1, 60), "1 attempt"),
        (HEAD + steps(1, 60) + DEATH, "1 attempt"),
        (BANNER + DEATH + BANNER + steps(1, 60), ONE),
        (WARNING + BANNER + steps(1, 60), "1 attempt"),
        (HEAD + WARNING + BANNER + steps(1, 60), "1 attempt"),
        (BANNER * 4 + steps(1, 60), "1 attempt"),
        (BANNER + steps(1, 60) + BANNER + steps(61, 90), "1 attempt"),
    ],
    ids=[
        *("none", "one", "two behind an attempt", "went on", "died behind its steps", "one by its banner"),
        *("survived before the banner", "survived between", "a banner a rank", "two stages"),
    ],
)
def test_starts_without_a_step(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "train.log").write_text(text)
    [run] = judge(["train.log"], cwd=tmp_path).runs
    [check] = [check for check in run.checks if check.id == "run.restarts"]
    assert check.what == told
