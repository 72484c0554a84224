"""What was logged and never as a number is not judged: no check may call it steady."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot

KEYS = [
    "grad_norm",
    "lr",
    "step_time",
    "tokens_per_second",
    "mfu",
    "peak_memory_gb",
    "val_loss",
    "moe/maxvio",
    "moe/entropy",
    "max_abs_output",
    "grad_zero_fraction",
    "loss_scale",
    "update_ratio/layer_0",
    "tensor_rms",
    "residual_scale/layer_0",
    "gpu_util",
    "gpu_temp",
    "bits_per_byte",
    "eval/accuracy",
    "loss/source_code",
    "loss/source_web",
    "loss_rank_0",
    "loss_rank_1",
    "comm_wait",
    "data_time",
    "reward",
    "kl",
    "entropy",
    "dead_neuron_fraction",
]
COUNTED = {
    "job.state",
    "run.changes",
    "run.restarts",
    "loss.nonfinite",
    "loss.spike",
    "loss.shift",
    "loss.drift",
    "loss.plateau",
}


def judged(folder: Path, other: float | None, loss: float | None) -> RunSnapshot:
    lines = []
    for step in range(1, 201):
        value = loss if loss is None else loss - 0.001 * step
        lines.append(json.dumps({"step": step, "loss": value, **dict.fromkeys(KEYS, other)}))
    (folder / "run.jsonl").write_text("\n".join(lines) + "\n")
    return judge([str(folder)], cwd=folder).runs[0]


@pytest.mark.parametrize("other", [float("nan"), float("inf"), None], ids=["NaN", "Inf", "null"])
def test_nothing_passes_that_was_never_a_number(tmp_path: Path, other: float | None) -> None:
    run = judged(tmp_path, other, 4.0)
    passed = {check.id: check.what for check in run.checks if check.verdict is Verdict.PASS and check.id not in COUNTED}
    assert passed == {}
    told = {check.id: check.what for check in run.checks if "never as a number" in check.what}
    assert {"sys.memory", "eval.heldout", "sys.throughput", "lr.schedule"} <= told.keys(), told


def test_a_loss_that_is_never_a_number_has_no_level(tmp_path: Path) -> None:
    run = judged(tmp_path, 1.0, float("nan"))
    verdicts = {check.id: check.verdict for check in run.checks}
    assert verdicts["loss.nonfinite"] is Verdict.FAIL
    assert Verdict.PASS not in {verdicts[name] for name in ("loss.spike", "loss.shift", "loss.drift")}


@pytest.mark.parametrize(("beside", "verdict"), [({}, Verdict.NO_DATA), ({"grad_norm": 0.5}, Verdict.PASS)])
def test_the_verdict_of_a_loss_that_is_only_ever_null_says_so(
    tmp_path: Path, beside: dict[str, float], verdict: Verdict
) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps({"step": i, "loss": None, **beside}) + "\n" for i in range(1, 401)))
    [run] = judge([str(path)], cwd=tmp_path).runs
    assert run.verdict is verdict
    assert "the loss" in run.verdict_reason
    assert "logged 400 times, never as a number" in run.verdict_reason


def test_the_losses_of_several_models_in_one_table_are_not_called_steady(tmp_path: Path) -> None:
    rows = [f"{model},{step},{4 - step / 300:.4f}" for step in range(1, 201) for model in ("a", "b")]
    (tmp_path / "models.csv").write_text("\n".join(["model,step,loss", *rows]) + "\n")
    run = judge([str(tmp_path)], cwd=tmp_path).runs[0]
    told = {check.id: check for check in run.checks if check.id.startswith("loss.") and check.id != "loss.groups"}
    assert {check.verdict for check in told.values()} == {Verdict.NO_DATA}
    assert all("several runs in one file" in check.what for check in told.values()), told
