"""The 39 rows: what a log carries, what follows from it, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.monitor.logs import Line, engine, parsed, train
from trainmon.monitor.assemble import assemble
from trainmon.monitor.explain import explain
from trainmon.monitor.inventory import Row, rows, text
from trainmon.monitor.job.judging import Pulse
from trainmon.monitor.judge import judge


def by_signal(lines: Sequence[Line]) -> dict[str, Row]:
    run = engine(detectors=None)
    run.feed("log", parsed(lines))
    run.settle()
    return {row.signal: row for row in rows(assemble(run, (), (), Pulse(None, None, False), live=False))}


def test_a_count_that_follows_is_not_missing_while_there_is_nothing_to_count() -> None:
    both = by_signal([train(step, 2.0, grad_norm=1.0) for step in range(1, 50)])["spike.co_count"]
    assert (both.status, both.rule) == ("derivable", "D5")
    alone = by_signal([train(step, 2.0) for step in range(1, 50)])["spike.co_count"]
    assert (alone.status, alone.rule) == ("missing", None)
    assert "gradient norm" in alone.to_get_it


@pytest.mark.parametrize(
    ("key", "per_card"),
    [("tokens_per_sec_per_gpu", True), ("throughput/device/tps", True), ("tps", False), ("tokens/s", False)],
)
def test_a_rate_of_one_card_is_said_to_be(key: str, *, per_card: bool) -> None:
    row = by_signal([train(step, 2.0, **{key: 7000.0}) for step in range(1, 50)])["sys.tokens_per_second"]
    assert (row.status, row.per_card) == ("present", per_card)


def test_a_loss_worked_out_without_counts_is_said_to_be_a_plain_mean_wherever_it_is_told() -> None:
    lines = [Line({f"loss/rank_{rank}": 2.0 + 0.1 * rank for rank in range(4)}, step) for step in range(1, 60)]
    run = engine()
    run.feed("log", parsed(lines))
    run.settle()
    snapshot = assemble(run, (), (), Pulse(None, None, False), live=False)
    row = next(row for row in rows(snapshot) if row.signal == "loss.train")
    assert (row.status, row.rule) == ("derivable", "D1")
    assert "plain mean" in row.derived
    assert "plain mean" in text(snapshot)
    (told,) = [number for number in explain("loss.nonfinite", snapshot).numbers if number.startswith("training loss")]
    assert "plain mean" in told


def test_what_is_logged_is_not_said_to_be_worked_out() -> None:
    assert by_signal([train(step, 2.0) for step in range(1, 50)])["loss.train"].derived == ""


def test_how_often_is_told_in_what_the_log_counts(tmp_path: Path) -> None:
    """A log without steps is numbered by its records: "every 1 steps" would tell of steps that nobody counted."""
    logs = {
        "every record": "loss: {loss}\n",
        "every epoch": "epoch {at}: train loss {loss}\n",
        "every 10 steps": "step {at}0 loss {loss}\n",
    }
    for told, form in logs.items():
        (tmp_path / "log").write_text("".join(form.format(at=at, loss=3 - at / 9) for at in range(1, 9)))
        [run] = judge(["log"], cwd=tmp_path).runs
        assert told in next(line for line in text(run).splitlines() if "loss.train" in line)
