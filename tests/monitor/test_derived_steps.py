"""How far a run is, where its records name no step."""

from __future__ import annotations

from pathlib import Path

from trainmon.monitor.judge import judge

_ROWS = "".join(
    f"{{'loss': {2 + 1 / row:.4f}, 'learning_rate': {1e-05 * min(row, 3):.0e}, 'epoch': {row / 20:.2f}}}\n"
    for row in range(1, 31)
)


def test_a_derived_step_is_held_against_the_total(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("logging_steps=10,\n  Total optimization steps = 400\n" + _ROWS)
    (run,) = judge(["train.log"], cwd=tmp_path).runs
    assert (run.first_step, run.last_step, run.total_steps) == (10, 300, 400)
    assert run.step_key == "derived from logging_steps"


def test_numbered_records_are_no_share_of_the_steps(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("  Total optimization steps = 400\n" + _ROWS)
    (run,) = judge(["train.log"], cwd=tmp_path).runs
    assert (run.step_key, run.last_step, run.total_steps, run.eta_s) == ("line", 30, None, None)
    assert " of 400" not in run.state_reason
    assert run.facts["total_steps"] == 400
    assert not any("of 400" in check.what for check in run.checks)
