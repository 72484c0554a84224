"""A run of which each rank logs its own numbers: in files of their own or in turn in one, whoever is first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import trainmon
from trainmon.monitor.api import Run
from trainmon.monitor.stats.nan_gaps import NanGaps
from trainmon.tails.record import Mark

Value = Callable[[int, int], float]
_NONFINITE = "loss.nonfinite"


def healthy(step: int, rank: int) -> float:
    """A loss that falls, a little another one on each rank."""
    return round(4.0 - step / 100 + 0.01 * math.sin(7.1 * step + rank), 4)


def nan_on(*ranks: int, since: int = 100) -> Value:
    return lambda step, rank: math.nan if rank in ranks and step >= since else healthy(step, rank)


def files(folder: Path, value: Value, ranks: int = 4, suffix: str = "log") -> Run:
    """A run of one file a rank."""
    for rank in range(ranks):
        rows = [(step, value(step, rank)) for step in range(1, 151)]
        if suffix == "jsonl":
            lines = [json.dumps({"step": step, "loss": loss, "lr": 1e-3}) for step, loss in rows]
        else:
            lines = [f"step {step} loss {loss} gnorm 0.70" for step, loss in rows]
        (folder / f"rank{rank}.{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return trainmon.read(folder)


def in_turn(folder: Path, value: Value, order: Sequence[int], text: str = "step {} loss {} gnorm 0.70") -> Run:
    """A run of one file in which the ranks print one after another."""
    path = folder / "train.log"
    lines = [f"[rank{rank}]: {text.format(step, value(step, rank))}\n" for step in range(1, 151) for rank in order]
    path.write_text("".join(lines), encoding="utf-8")
    return trainmon.read(path)


def said(run: Run, check: str) -> str:
    """``VERDICT what`` of one check."""
    return next(f"{one.verdict.value} {one.what}" for one in run.checks if one.id == check)


@pytest.mark.parametrize("suffix", ["log", "jsonl"])
@pytest.mark.parametrize("ranks", [(0, 1, 2, 3), (1,), (0, 1)])
def test_files_of_ranks_whose_loss_is_lost_fail(tmp_path: Path, ranks: tuple[int, ...], suffix: str) -> None:
    run = files(tmp_path, nan_on(*ranks), suffix=suffix)
    assert said(run, _NONFINITE).startswith("FAIL")
    told = {episode.signal.label_dict["rank"] for episode in run.episodes if episode.signal.signal == "loss.rank"}
    assert told == {str(rank) for rank in ranks}
    assert any(str(episode.signal) == "loss.train" and episode.first_step == 100 for episode in run.episodes)


def test_the_loss_of_files_of_ranks_is_their_mean(tmp_path: Path) -> None:
    run = files(tmp_path, healthy)
    view = run.series("loss.train")
    means = [np.mean([healthy(step, rank) for rank in range(4)]) for step in range(1, 151)]
    assert np.allclose(view.values, means)
    assert run.verdict.value == "PASS"
    assert said(run, _NONFINITE) == "PASS 150 values, all finite"
    assert run.series("grad.norm").values.tolist() == [0.7] * 150


def test_files_of_ranks_that_all_run_away_are_told_as_the_runs(tmp_path: Path) -> None:
    run = files(tmp_path, lambda step, rank: healthy(step, rank) * (1.0 if step < 80 else 1.04 ** (step - 80)))
    assert run.verdict.value in ("WARN", "FAIL")
    assert any(str(episode.signal) == "loss.train" for episode in run.episodes)


def test_one_lost_loss_of_a_rank_that_recovers_is_a_warning(tmp_path: Path) -> None:
    run = files(tmp_path, lambda step, rank: math.nan if (step, rank) == (90, 2) else healthy(step, rank))
    assert said(run, _NONFINITE).startswith("WARN")


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2, 3), (3, 1, 0, 2)])
def test_ranks_in_turn_fail_whichever_is_first(tmp_path: Path, order: tuple[int, ...]) -> None:
    for lost in order:
        assert said(in_turn(tmp_path, nan_on(lost), order), _NONFINITE).startswith("FAIL"), lost


def test_healthy_ranks_in_turn_are_counted_once(tmp_path: Path) -> None:
    run = in_turn(tmp_path, healthy, (0, 1, 2, 3))
    assert said(run, _NONFINITE) == "PASS 150 values, all finite"
    assert run.series("loss.train").values.tolist() == [healthy(step, 0) for step in range(1, 151)]


MEMORY = "step: {0}  loss: 2.5{0:03d}  memory: {1:.2f}GiB({2:.2f}%)  tps: 5,000"


def _memory(folder: Path, order: Sequence[int], fullest: int, since: int = 60) -> Run:
    path = folder / "train.log"
    lines = []
    for step in range(1, 121):
        for rank in order:
            gib = 79.0 if rank == fullest and step >= since else 40.0 + rank / 100
            lines.append(f"[rank{rank}]: {MEMORY.format(step, gib, gib / 0.8)}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return trainmon.read(path)


@pytest.mark.parametrize("order", list(permutations(range(3)))[::2])
def test_the_fullest_of_the_ranks_in_turn_is_the_runs_memory(tmp_path: Path, order: tuple[int, ...]) -> None:
    for fullest in order:
        run = _memory(tmp_path, order, fullest)
        assert said(run, "sys.memory").startswith("FAIL memory stands at 99% of the device since step 60"), fullest
        view = run.series("sys.memory_share")
        assert np.allclose(view.values[view.steps > 60], 0.9875)
        assert not any(signal.startswith("memory") for signal in run.signals)


def test_ranks_with_the_same_memory_change_nothing(tmp_path: Path) -> None:
    run = in_turn(
        tmp_path, lambda step, rank: step + rank / 10, (0, 1, 2), "step: {} loss: {} memory: 40.00GiB(50.00%)"
    )
    view = run.series("sys.memory_share")
    assert (view.count, set(view.values.tolist())) == (150, {0.5})


def test_nan_in_a_table_is_a_loss_only_after_a_number_and_until_one_heals() -> None:
    values = np.array([math.nan, 1.0, math.nan, math.nan, 1.0, math.nan, math.inf])
    marks = np.array([Mark.NAN, 1, Mark.NAN, Mark.NAN, 1, Mark.NAN, Mark.POS_INF], dtype=np.uint8)
    whole = [False, False, True, True, False, False, True]
    assert NanGaps().bad(values, marks).tolist() == whole
    cut = NanGaps()
    assert [bool(cut.bad(values[i : i + 1], marks[i : i + 1])[0]) for i in range(len(values))] == whole
    said_so = np.array([Mark.SAID_NAN], dtype=np.uint8)
    assert NanGaps().bad(np.array([math.nan]), said_so).tolist() == [True]
