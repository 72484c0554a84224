"""Ranks that take turns in one file of records: the run's loss is what files of ranks would give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.derive.derivation import Derivation
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

LOSS, WORST = SignalKey("loss.train"), SignalKey("loss.worst_rank")
TOKENS = (1000, 2000, 3000)
STEPS = 60


def loss(step: int, rank: int) -> float:
    return round(4.0 - step / 100 + 0.5 * rank, 4)


def read(folder: Path) -> RunSnapshot:
    [run] = judge([], cwd=folder).runs
    return run


def of(run: RunSnapshot, key: SignalKey = LOSS) -> dict[float, float]:
    series = run.series[key]
    return dict(zip(series.steps.tolist(), np.round(series.values, 6).tolist(), strict=True))


def in_turn(folder: Path, ranks: tuple[int, ...] = (0, 1, 2), **more: tuple[int, ...]) -> RunSnapshot:
    rows = [
        {"rank": rank, "step": step, "loss": loss(step, rank), **{key: values[rank] for key, values in more.items()}}
        for step in range(1, STEPS + 1)
        for rank in ranks
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read(folder)


def in_files(folder: Path, **more: tuple[int, ...]) -> RunSnapshot:
    for rank in range(3):
        rows = [
            {"step": step, "loss": loss(step, rank), **{key: values[rank] for key, values in more.items()}}
            for step in range(1, STEPS + 1)
        ]
        (folder / f"metrics_rank{rank}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read(folder)


@pytest.mark.parametrize("tokens", [{}, {"valid_tokens": TOKENS}], ids=["no counts", "counts"])
def test_one_file_and_files_of_ranks_agree(tmp_path: Path, tokens: dict[str, tuple[int, ...]]) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "many").mkdir()
    one, many = of(in_turn(tmp_path / "one", **tokens)), of(in_files(tmp_path / "many", **tokens))
    weights = TOKENS if tokens else (1, 1, 1)
    wanted = {
        float(step): sum(weight * loss(step, rank) for rank, weight in enumerate(weights)) / sum(weights)
        for step in range(1, STEPS + 1)
    }
    assert many == pytest.approx(wanted)
    assert {step: one[step] for step in wanted if step > 2} == pytest.approx({s: x for s, x in wanted.items() if s > 2})
    assert set(one) == set(wanted)


def test_the_speaker_may_be_the_worst(tmp_path: Path) -> None:
    worst = of(in_turn(tmp_path, (2, 0, 1)), WORST)
    assert all(worst[step] == loss(int(step), 2) for step in range(3, STEPS + 1))


def test_ranks_that_tell_the_same_leave_the_loss_as_logged(tmp_path: Path) -> None:
    rows = [{"rank": rank, "step": step, "loss": loss(step, 0)} for step in range(1, STEPS + 1) for rank in range(3)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert of(read(tmp_path)) == {float(step): loss(step, 0) for step in range(1, STEPS + 1)}


def test_a_rank_that_falls_silent_leaves_the_speaker_to_speak(tmp_path: Path) -> None:
    rows = [
        {"rank": rank, "step": step, "loss": loss(step, rank)}
        for step in range(1, STEPS + 1)
        for rank in range(3)
        if rank < 2 or step < 30
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = of(read(tmp_path))
    assert told[29.0] == loss(29, 1)  # the mean of the three
    assert all(told[float(step)] == loss(step, 0) for step in range(31, STEPS + 1))


ROWS = [(step, rank) for step in range(1, 21) for rank in range(3) if (step, rank) != (15, 2)]


def derived(cuts: list[int]) -> list[FloatArray]:
    """What the rows of `ROWS` give when they come in frames that end at `cuts`."""
    derivation, ends = Derivation(Thresholds(), {}), [*cuts, len(ROWS)]
    columns: list[list[FloatArray]] = [[], []]
    for begin, end in zip([0, *cuts], ends, strict=True):
        rows = ROWS[begin:end]
        told: dict[SignalKey, FloatArray] = {}
        for place, (step, rank) in enumerate(rows):
            key = SignalKey("loss.rank", (("rank", str(rank)),)) if rank else LOSS
            told.setdefault(key, np.full(len(rows), np.nan))[place] = loss(step, rank)
            if not rank:
                told.setdefault(SignalKey("rank"), np.full(len(rows), np.nan))[place] = 0.0
        steps = np.array([step for step, _ in rows], np.float64)
        frame = derivation.apply(Frame(0, "m.jsonl", steps, steps, steps.astype(np.int64), told))
        for column, key in zip(columns, (LOSS, WORST), strict=True):
            column.append(frame.columns.get(key, np.full(len(rows), np.nan)))
    return [np.concatenate(column) for column in columns]


@given(st.sets(st.integers(1, len(ROWS) - 1)))
def test_how_rows_are_cut_into_frames_changes_nothing(cuts: set[int]) -> None:
    for whole, pieces in zip(derived([]), derived(sorted(cuts)), strict=True):
        np.testing.assert_array_equal(whole, pieces)
