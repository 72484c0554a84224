"""Epochs that are told in a heading above steps that begin again are one attempt; a restart stays one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tails.formats.stdout_reading import fact, read, rows
from trainmon.monitor.judge import judge

LINE = "step {step} | loss {loss:.4f} | lr 1.0e-04\n"


def log(heading: str, epochs: range, steps: range = range(1, 21), line: str = LINE) -> str:
    return "".join(
        heading.format(epoch=epoch)
        + "\n"
        + "".join(line.format(step=step, loss=3 - epoch / 4 - step / 99) for step in steps)
        for epoch in epochs
    )


@pytest.mark.parametrize(
    "heading",
    ["Epoch 1{epoch}/14", "=== Epoch {epoch} ===", "Epoch [{epoch}/4]", "Starting epoch {epoch}", "epoch: {epoch}"],
)
@pytest.mark.parametrize("steps", [range(1, 21), range(20), range(10, 201, 10)])
def test_steps_below_headings_of_epochs_are_added_up(tmp_path: Path, heading: str, steps: range) -> None:
    (tmp_path / "train.log").write_text(log(heading, range(1, 5), steps))
    [run] = judge(["train.log"], cwd=tmp_path).runs
    assert len(run.attempts) == 1
    assert run.step_count == 4 * len(steps)


def test_an_epoch_that_is_begun_again_is_a_restart(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(log("Epoch {epoch}/4", range(1, 4)) + log("Epoch {epoch}/4", range(1, 5)))
    [run] = judge(["train.log"], cwd=tmp_path).runs
    assert run.attempts == ((1.0, 60.0), (1.0, 80.0))


def test_steps_that_go_on_below_headings_are_left_as_they_are() -> None:
    text = "".join(log("Epoch {epoch}/3", range(e, e + 1), range(20 * e, 20 * e + 20)) for e in range(3))
    found = rows(read(text))
    assert [step for step, *_ in found] == [float(step) for step in range(60)]
    assert [cells["epoch"] for *_, cells in found if "epoch" in cells] == [0.0]


@pytest.mark.parametrize("cuts", [(1,), (21, 22), (21, 43)])
def test_where_the_log_is_cut_changes_nothing(cuts: tuple[int, ...]) -> None:
    text = log("Epoch {epoch}/4", range(1, 5))
    assert rows(read(text, cuts=cuts)) == rows(read(text))


def test_a_total_below_headings_of_epochs_is_one_epoch_s_where_steps_begin_anew() -> None:
    line = "  iter {step}/20 loss {loss:.4f} lr 1.0e-04\n"
    assert fact(read(log("Epoch {epoch}/4", range(1, 2), line=line)), "total_steps") is None  # may be one epoch's
    assert fact(read(log("Epoch {epoch}/4", range(1, 3), line=line)), "total_steps") == 80
    on = "".join(log("Epoch {epoch}/3", range(e, e + 1), range(20 * e - 19, 20 * e + 1), line) for e in range(1, 3))
    assert fact(read(on), "total_steps") == 20
    assert fact(read(log("Epoch {epoch}", range(1, 2), line=line)), "total_steps") == 20
