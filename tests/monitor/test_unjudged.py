"""A target of which nothing could be judged is told, and counts, whatever stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.monitor.judge import judge


@pytest.mark.parametrize("bad", ["", "  ", "nope.log", "no*pe", "slurm:", "ssh://", "a\0b", "empty/"])
def test_a_bad_target_beside_a_good_one(tmp_path: Path, bad: str) -> None:
    (tmp_path / "train.log").write_text("".join(f"step: {step} | loss: 2.5 | lr: 0.1\n" for step in range(1, 41)))
    (tmp_path / "empty").mkdir()
    found = judge(["train.log", bad], cwd=tmp_path)
    assert [run.last_step for run in found.runs if run.target == "train.log"] == [40]
    assert found.named_unjudged
    assert found.problems or any(file.problem for run in found.runs for file in run.files)
