"""Logs of one run, start after start, beside each other: which belong together where no scheduler says."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from trainmon.monitor.judge import judge
from trainmon.tails import continued
from trainmon.tails.continued import Continuations
from trainmon.tails.discover import discover
from trainmon.tails.opening import open_regular


def loss_at(step: float, shift: float = 0.0) -> float:
    return 2 + shift + math.exp(-step / 80) + 0.01 * math.sin(7.0 * step)


def log(path: Path, steps: range, *, shift: float = 0.0, head: str = "") -> None:
    lines = [f"step: {step} | loss: {loss_at(step, shift):.4f} | lr: 1.00e-04\n" for step in steps]
    path.write_text(head + "".join(lines))


def runs(folder: Path) -> list[list[str]]:
    return [[file.path.name for file in run.files] for run in discover([str(folder)], folder).runs]


@pytest.mark.parametrize("begin", [101, 91, 51])
@pytest.mark.parametrize("names", [("slurm-99.out", "slurm-101.out"), ("train_7.log", "train_8.log")])
def test_a_log_that_goes_on_with_another_is_the_same_run(tmp_path: Path, names: tuple[str, str], begin: int) -> None:
    log(tmp_path / names[0], range(1, 101))
    log(tmp_path / names[1], range(begin, 201))
    [run] = judge([str(tmp_path)], cwd=tmp_path).runs
    assert run.attempts == ((1.0, 100.0), (float(begin), 200.0))
    assert run.step_count == 200


def test_the_losses_of_steps_trained_again_are_compared(tmp_path: Path) -> None:
    log(tmp_path / "slurm-1.out", range(1, 101))
    log(tmp_path / "slurm-2.out", range(61, 201), shift=0.03)
    [run] = judge([str(tmp_path)], cwd=tmp_path).runs
    replays = [check for check in run.checks if "replay" in check.name.lower() or "replay" in check.id]
    assert replays
    assert "differ" in str(replays)


@pytest.mark.parametrize(
    ("steps", "more"),
    [
        (range(1, 201), {}),  # from the start: another run, or from scratch
        (range(2, 201), {}),
        (range(91, 201), {"shift": 1.0}),  # another loss at the same steps
        (range(101, 201), {"shift": 2.0}),
        (range(140, 201), {}),  # steps that neither has
        (range(91, 201), {"head": "number of parameters: 77,000,000\n"}),
    ],
)
def test_other_logs_are_other_runs(tmp_path: Path, steps: range, more: dict[str, object]) -> None:
    head = "number of parameters: 55,000,000\n" if "head" in more else ""
    log(tmp_path / "slurm-1.out", range(1, 101), head=head)
    log(tmp_path / "slurm-2.out", steps, **more)  # type: ignore[arg-type]
    assert runs(tmp_path) == [["slurm-1.out"], ["slurm-2.out"]]


def test_starts_that_came_to_nothing_are_starts_of_the_run(tmp_path: Path) -> None:
    log(tmp_path / "slurm-8.out", range(1, 101))
    log(tmp_path / "slurm-9.out", range(81, 86))
    log(tmp_path / "slurm-10.out", range(81, 300))
    [run] = judge([str(tmp_path)], cwd=tmp_path).runs
    assert run.attempts == ((1.0, 100.0), (81.0, 85.0), (81.0, 299.0))


def test_two_runs_whose_jobs_take_turns_are_two(tmp_path: Path) -> None:
    log(tmp_path / "slurm-1.out", range(1, 101))
    log(tmp_path / "slurm-2.out", range(1, 101), shift=1.0)
    log(tmp_path / "slurm-3.out", range(91, 201))
    log(tmp_path / "slurm-4.out", range(91, 201), shift=1.0)
    assert runs(tmp_path) == [["slurm-1.out", "slurm-3.out"], ["slurm-2.out", "slurm-4.out"]]


def test_logs_that_are_named_stay_apart(tmp_path: Path) -> None:
    log(tmp_path / "slurm-1.out", range(1, 101))
    log(tmp_path / "slurm-2.out", range(91, 201))
    assert len(discover(["slurm-1.out", "slurm-2.out"], tmp_path).runs) == 2


def test_a_log_that_has_no_step_yet_is_looked_at_again(tmp_path: Path) -> None:
    logs = Continuations()
    log(tmp_path / "slurm-1.out", range(1, 101))
    (tmp_path / "slurm-2.out").write_text("torch.distributed is launched\n")
    assert len(discover([str(tmp_path)], tmp_path, logs=logs).runs) == 2
    log(tmp_path / "slurm-2.out", range(91, 201), head="torch.distributed is launched\n")
    assert len(discover([str(tmp_path)], tmp_path, logs=logs).runs) == 1


def test_logs_that_were_looked_at_are_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "slurm-1.out", range(1, 101))
    log(tmp_path / "slurm-2.out", range(101, 201))
    (tmp_path / "slurm-3.out").write_text("torchrun starts\n" * 50)
    known = Continuations()
    first = discover([str(tmp_path)], tmp_path, logs=known)
    opened: list[str] = []
    real = open_regular

    def noted(path: str | Path) -> tuple[int, os.stat_result]:
        opened.append(str(path))
        return real(path)

    monkeypatch.setattr(continued, "open_regular", noted)
    assert discover([str(tmp_path)], tmp_path, logs=known).runs == first.runs
    assert opened == []
    log(tmp_path / "slurm-3.out", range(201, 301))
    assert len(discover([str(tmp_path)], tmp_path, logs=known).runs) == 1
    assert opened
