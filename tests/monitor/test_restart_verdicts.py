"""What a restart does to open faults: those of the process end with it, abandoned branches count as warnings."""

from __future__ import annotations

import numpy as np
import pytest

from tests.monitor.logs import Line, feed_cut, plain_state, read, train
from tests.monitor.logs import engine as new_engine
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.tails.record import NoteKind


def stretch(first: int, last: int, *, seed: int = 0, bad_from: int | None = None, **more: float) -> list[Line]:
    """Steps first..last of a falling loss; NaN from step `bad_from` on."""
    rng = np.random.default_rng(seed)
    lines = []
    for step in range(first, last + 1):
        loss = 2.0 + 8.0 * (1 + step / 40) ** -0.5 + 0.01 * rng.normal()
        if bad_from is not None and step >= bad_from:
            loss = float("nan")
        lines.append(train(step, loss, grad_norm=0.4 + 0.02 * rng.random(), **more))
    return lines


def judged(*parts: list[Line]) -> RunEngine:
    return read([line for part in parts for line in part], detectors=None)


def check(made: RunEngine, name: str) -> CheckResult:
    return next(result for result in made.checks() if result.id == name)


def loud(made: RunEngine, name: str) -> list[Episode]:
    return [e for e in made.episodes() if e.check == name and e.severity >= Severity.WARN]


def test_memory_ends_with_its_attempt() -> None:
    full = stretch(1, 400, memory_share=99.0)
    made = judged(full, stretch(351, 700, memory_share=60.0))
    assert len(made.attempts) == 2
    (episode,) = loud(made, "sys.memory")
    assert episode.recovered
    assert episode.what.endswith("(ended with its attempt)")
    assert check(made, "sys.memory").verdict is Verdict.WARN
    assert "ended with its attempt" in check(made, "sys.memory").what


def test_memory_that_is_full_again_is_told_again() -> None:
    made = judged(stretch(1, 400, memory_share=99.0), stretch(351, 700, memory_share=99.0))
    assert [e.recovered for e in loud(made, "sys.memory")] == [True, False]
    assert check(made, "sys.memory").verdict is Verdict.FAIL


@pytest.mark.parametrize("back_to", [451, 251], ids=["a little", "half the run"])
def test_a_roll_back_past_a_nan_leaves_it_behind(back_to: int) -> None:
    made = judged(stretch(1, 520, bad_from=500), stretch(back_to, 900))
    assert len(made.attempts) == 2
    (episode,) = loud(made, "loss.nonfinite")
    assert (episode.first_step, episode.severity, episode.recovered) == (500, Severity.WARN, True)
    assert episode.what.endswith(f"(left behind by the restart at step {back_to})")
    assert check(made, "loss.nonfinite").verdict is Verdict.WARN


def test_the_same_fault_after_the_roll_back_is_another_one() -> None:
    made = judged(stretch(1, 520, bad_from=500), stretch(451, 560, bad_from=540))
    assert [(e.first_step, e.recovered) for e in loud(made, "loss.nonfinite")] == [(500, True), (540, False)]
    assert check(made, "loss.nonfinite").verdict is Verdict.FAIL


def test_a_new_run_does_not_heal_an_older_one() -> None:
    made = judged(stretch(1, 520, bad_from=500), stretch(1, 600, seed=1))
    assert check(made, "loss.nonfinite").verdict is Verdict.FAIL
    # A later roll-back is one of the second run, not of the first.
    made = judged(stretch(1, 520, bad_from=500), stretch(1, 600, seed=1), stretch(401, 800, seed=1))
    assert check(made, "loss.nonfinite").verdict is Verdict.FAIL


def test_a_resume_behind_the_fault_does_not_heal_it() -> None:
    made = judged(stretch(1, 520, bad_from=500), stretch(521, 560, bad_from=500))
    assert check(made, "loss.nonfinite").verdict is Verdict.FAIL


def test_a_spike_that_is_rolled_back() -> None:
    high = [train(step, 30.0, grad_norm=0.4) for step in range(501, 800)]
    made = judged(stretch(1, 500), high, [Line(note=NoteKind.RESUMED)], stretch(451, 900))
    assert check(made, "loss.spike").verdict is Verdict.WARN
    assert "left behind by the restart at step 451" in check(made, "loss.spike").what
    assert not [e for e in made.episodes() if not e.recovered and e.severity >= Severity.WARN]


@pytest.mark.parametrize("cuts", [[1], [519, 520, 521, 522], list(range(0, 970, 7))])
def test_the_same_however_it_is_cut(cuts: list[int]) -> None:
    lines = [*stretch(1, 520, bad_from=500, memory_share=99.0), Line(note=NoteKind.LAUNCH), *stretch(451, 900)]
    whole, pieces = new_engine(detectors=None), new_engine(detectors=None)
    feed_cut(whole, lines, [])
    feed_cut(pieces, lines, cuts, settling=True)
    assert plain_state(whole) == plain_state(pieces)


@pytest.mark.parametrize(("first", "again"), [(196, 5), (200, 1), (201, 0)])
def test_the_steps_that_were_trained_again_are_counted(first: int, again: int) -> None:
    made = judged(stretch(1, 200), [Line(note=NoteKind.RESUMED)], stretch(first, 260, seed=1))
    assert check(made, "run.restarts").what.endswith(f"{again} steps trained again")


def test_steps_between_two_records_are_trained_again_too() -> None:
    made = judged(stretch(1, 200)[9::10], [Line(note=NoteKind.RESUMED)], stretch(1, 260, seed=1)[159::10])
    assert "50 steps trained again" in check(made, "run.restarts").what
