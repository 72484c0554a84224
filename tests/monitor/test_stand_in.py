"""The end of a run that only its second file tells: the first was not flushed before the job died."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.monitor.logs import Line, engine, parsed, train
from tests.tails.clocks import FakeClock
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.record import Parsed

LOSS, GRAD = SignalKey("loss.train"), SignalKey("grad.norm")


def loss(step: int) -> float:
    return 2 + 3 * math.exp(-step / 40)


def write(folder: Path, *, flushed: int, ends: int, bad_from: int, level: float = 0.0) -> None:
    """metrics.jsonl as far as it was flushed, and a text that goes on to the end."""
    (folder / "metrics.jsonl").write_text(
        "".join(f'{{"step": {step}, "loss": {loss(step):.4f}, "grad_norm": 0.5}}\n' for step in range(flushed))
    )
    words = (f"{loss(step) + level:.4f}" if step < bad_from else "nan" for step in range(ends))
    (folder / "train.log").write_text("".join(f"step {step} | loss {word}\n" for step, word in enumerate(words)))


def test_a_loss_that_is_lost_behind_the_end_of_the_first_file_fails(tmp_path: Path) -> None:
    write(tmp_path, flushed=100, ends=120, bad_from=110)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.verdict is Verdict.FAIL
    assert run.series[LOSS].steps.tolist() == [float(step) for step in range(110)]
    assert run.series[LOSS].bad_steps.tolist() == [float(step) for step in range(110, 120)]
    assert run.series[GRAD].count == 100


def test_both_to_the_end_count_once(tmp_path: Path) -> None:
    write(tmp_path, flushed=120, ends=120, bad_from=110)
    (run,) = judge([], cwd=tmp_path).runs
    assert (run.series[LOSS].count, run.series[LOSS].bad_steps.tolist()) == (120, [])


def test_records_without_a_step_go_on_behind_the_last_state(tmp_path: Path) -> None:
    logged = [{"step": 10 * at, "loss": round(loss(at), 4), "epoch": at / 10} for at in range(1, 31)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": logged, "max_steps": 900}))
    words = (f"{loss(at):.4f}" if at < 37 else "nan" for at in range(1, 41))
    (tmp_path / "train.log").write_text("".join(f"{{'loss': {word}, 'lr': 1e-05}}\n" for word in words))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == [10.0 * at for at in range(1, 37)]
    assert run.series[LOSS].bad_steps.tolist() == [370.0, 380.0, 390.0, 400.0]
    assert run.verdict is Verdict.FAIL


def test_a_file_that_contradicts_the_first_stands_in_for_nothing(tmp_path: Path) -> None:
    write(tmp_path, flushed=100, ends=120, bad_from=110, level=1.0)
    (run,) = judge([], cwd=tmp_path).runs
    assert run.series[LOSS].steps.max() == 99


def seldom(steps: range, first_line: int) -> Parsed:
    return parsed([Line({"loss": loss(step)}, float(step)) for step in steps if step % 5 == 0], first_line, "b")


def test_of_a_file_that_tells_more_seldom_the_first_is_waited_for() -> None:
    made = engine(sources=["a", "b"])
    made.feed("a", parsed([train(step, loss(step)) for step in range(20)], source="a"))
    made.feed("b", seldom(range(30), 1))
    made.settle()
    assert made.series_views()[LOSS].count == 20
    made.feed("a", parsed([train(step, loss(step)) for step in range(20, 24)], 21, "a"))
    made.settle()
    assert made.series_views()[LOSS].count == 24
    made.settle(is_final=True)
    assert made.series_views()[LOSS].steps.tolist() == [*map(float, range(24)), 25.0]


def test_a_first_file_that_writes_no_more_is_not_waited_for_longer_than_for_some_records() -> None:
    made = engine(sources=["a", "b"])
    made.feed("a", parsed([train(step, loss(step)) for step in range(500)], source="a"))
    counts = []
    for begin in range(0, 3000, 100):
        made.feed("b", seldom(range(begin, begin + 100), begin // 5 + 1))
        made.settle()
        counts.append(made.series_views()[LOSS].count)
    assert counts[5:14] == [500] * 9
    assert counts[20:] == [500 + (stop - 500) // 5 for stop in range(2100, 3100, 100)]


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("ahead", [5, 60])
def test_a_first_file_that_is_flushed_late_raises_no_alarm(ahead: int, every: int) -> None:
    ahead *= every
    made = RunEngine("r", "r", clock=FakeClock(), sources=["a", "b"])
    for begin, stop in ((0, 100), (100, 100 + ahead)):
        steps = range(begin, stop)
        text = [Line({"loss": loss(step), "lr": 1e-4}, float(step)) for step in steps[::every]]
        if not begin:
            made.feed("a", parsed([Line({"loss": loss(step)}, float(step)) for step in steps], begin + 1, "a"))
        made.feed("b", parsed(text, begin + 1, "b"))
        made.settle()
    assert made.series_views()[LOSS].count == (100 + ahead if every == 1 else 100)
    made.feed("a", parsed([Line({"loss": loss(step)}, float(step)) for step in range(100, 100 + ahead)], 101, "a"))
    made.settle()
    assert [episode.check for episode in made.episodes() if episode.check == "loss.nonfinite"] == []
    assert made.series_views()[LOSS].steps.tolist() == [float(step) for step in range(100 + ahead)]


def test_a_loss_that_one_file_tells_to_the_end_has_not_vanished(tmp_path: Path) -> None:
    write(tmp_path, flushed=150, ends=200, bad_from=200)
    text = (tmp_path / "train.log").read_text()
    (tmp_path / "train.log").write_text(text.replace("\n", " | lr 1e-4\n"))
    (run,) = judge([], cwd=tmp_path).runs
    assert (run.verdict, run.series[LOSS].count) == (Verdict.PASS, 200)


def test_what_comes_too_late_is_not_counted_again() -> None:
    made = engine(sources=["a", "b"])
    made.feed("a", parsed([train(step, loss(step)) for step in range(20)], source="a"))
    made.feed("b", parsed([Line({"loss": loss(step)}, float(step)) for step in range(30)], source="b"))
    made.settle(is_final=True)
    made.feed("a", parsed([train(step, loss(step)) for step in range(20, 40)], 21, "a"))
    made.settle()
    assert made.series_views()[LOSS].steps.tolist() == [float(step) for step in range(40)]
