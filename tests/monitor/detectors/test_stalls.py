"""A run in which nothing was logged for hours: told afterwards, and told from pauses that have a reason."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, one, run
from tests.monitor.detectors.synthetic import LOSS, RunSpec, at, healthy, with_columns
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note, NoteKind, TimeKind

HOURS = 3 * 3600.0


def paused(*steps: float, cadence: int = 1, pause_s: float = HOURS) -> Frame:
    """A run with time stamps and a loss, and a pause behind each of these steps."""
    frame = healthy(RunSpec(steps=600 * cadence, cadence=cadence, seed=2))
    later = sum((np.where(frame.steps > step, pause_s, 0.0) for step in steps), start=np.zeros(len(frame)))
    return dataclasses.replace(frame, times=frame.times + later, columns={LOSS: frame.columns[LOSS]})


@pytest.mark.parametrize("cadence", [1, 10, 100])
def test_a_silence_between_two_steps_is_a_warning(cadence: int) -> None:
    frame = paused(400 * cadence, cadence=cadence)
    told = run(StepTime, [frame])
    assert one(told, "stall") == (400 * cadence, Severity.WARN, True)
    assert f"nothing was logged for 3 h 0 min after step {400 * cadence}" in told.loud[0].what
    for bounds in ([at(frame, 400 * cadence)], [at(frame, 400 * cadence) + 1], list(range(7, 600, 13))):
        assert [repr(f) for f in run(StepTime, cut(frame, bounds)).findings] == [repr(f) for f in told.findings]


def test_what_is_usual_for_the_run_or_short_is_none() -> None:
    assert run(StepTime, [paused(400, pause_s=500.0)]).loud == []
    assert run(StepTime, [paused(10)]).loud == []
    seldom = paused()
    hourly = dataclasses.replace(seldom, times=seldom.times[0] + 3600.0 * np.arange(len(seldom)))
    assert run(StepTime, [hourly]).loud == []
    arrived = dataclasses.replace(paused(400), time_kind=TimeKind.ARRIVAL)
    assert run(StepTime, [arrived]).loud == []


def test_pauses_on_a_rhythm_are_learned() -> None:
    assert len(run(StepTime, [paused(*range(100, 600, 100))]).loud) == 3  # two distances make a rhythm
    assert len(run(StepTime, [paused(150, 310, 333)]).loud) == 3


def test_an_evaluation_explains_a_pause() -> None:
    frame = paused(400)
    scores = np.where(frame.steps == 400, 2.5, np.nan)
    assert run(StepTime, [with_columns(frame, {SignalKey("eval.nll"): scores})]).loud == []


def test_a_step_that_does_not_go_on_is_another_matter() -> None:
    frame = paused(400)
    steps = np.where(frame.steps > 400, frame.steps - 1, frame.steps)
    assert run(StepTime, [dataclasses.replace(frame, steps=steps)]).loud == []


def heard(kind: NoteKind, time: float | None = None) -> list[str]:
    """What is told of a pause behind step 400 when such a line stands in it; all of the log before it was read."""
    frame = paused(400)
    detector = StepTime(Thresholds(), {})
    first, rest = cut(frame, [at(frame, 401)])
    said = list(detector.update(first))
    said += detector.note(Note("run.log", 5, 5, kind, "", 400.0, time, TimeKind.ABSOLUTE))
    said += detector.update(rest)
    return [finding.what for finding in said if finding.kind == "stall" and finding.action == "open"]


def test_what_the_log_says_of_a_pause() -> None:
    assert len(heard(NoteKind.LOSS_SCALE_OVERFLOW)) == 1
    assert heard(NoteKind.CHECKPOINT_SAVED) == []
    assert heard(NoteKind.LAUNCH) == []


def test_a_job_that_is_stopped_long_after_its_last_record_hung() -> None:
    end = float(paused(400).times[399])
    (said,) = heard(NoteKind.TIME_LIMIT, end + 2 * HOURS)
    assert "nothing was logged for 6 h 0 min after step 400, then the job was stopped" in said
    assert heard(NoteKind.TIME_LIMIT, end + 60.0) == []
    assert heard(NoteKind.TIME_LIMIT) == []


def test_time_is_not_taken_across_attempts() -> None:
    frame = paused(400)
    first, rest = cut(frame, [at(frame, 401)])
    told = run(StepTime, [first, dataclasses.replace(rest, attempt=1)])
    assert told.loud == []
    assert told.result is not None
    assert told.result.verdict is not Verdict.WARN


@pytest.mark.parametrize(
    ("ends", "is_skipped"),
    [
        ((2024, 3, 31, 1), True),  # Berlin; an hour earlier in London, an hour later in Athens
        ((2024, 3, 31, 0), True),
        ((2024, 3, 31, 2), True),
        ((2025, 3, 9, 1), True),  # New York
        ((2024, 10, 6, 1), True),  # Sydney
        ((2024, 9, 29, 1), True),  # Auckland
        ((2024, 3, 30, 1), False),
        ((2024, 3, 17, 1), False),
        ((2024, 3, 31, 13), False),
    ],
)
def test_an_hour_that_clocks_skip_is_no_silence(ends: tuple[int, int, int, int], is_skipped: bool) -> None:
    """Stamps without a zone jump by an hour on one night of the year; what is longer is told by what is beyond it."""
    night = datetime(*ends, 59, 59, 900_000, tzinfo=UTC).timestamp()

    def told(kind: TimeKind, pause_s: float) -> list[tuple[Severity, str]]:
        frame = paused(400, pause_s=pause_s)
        frame = dataclasses.replace(frame, times=frame.times - frame.times[399] + night, time_kind=kind)
        whole = [each for each in run(StepTime, [frame]).findings if each.kind == "stall"]
        pieces = [each for each in run(StepTime, cut(frame, range(1, 600))).findings if each.kind == "stall"]
        assert [repr(each) for each in pieces] == [repr(each) for each in whole]
        return [(each.severity, each.what.split(" after")[0]) for each in whole if each.action == "open"]

    one_hour = Severity.WARN, "nothing was logged for 1 h 0 min"
    if is_skipped:
        assert told(TimeKind.NAIVE, 3600.0) == [(Severity.INFO, "the stamps say no zone and go on 1 h 0 min later")]
        assert told(TimeKind.NAIVE, 2 * 3600.0) == [(Severity.WARN, "nothing was logged for at least 1 h 0 min")]
    else:
        assert told(TimeKind.NAIVE, 3600.0) == [one_hour]
        assert told(TimeKind.NAIVE, 2 * 3600.0) == [(Severity.WARN, "nothing was logged for 2 h 0 min")]
    assert told(TimeKind.ABSOLUTE, 3600.0) == [one_hour]


def test_an_hour_that_cannot_be_judged_is_said_and_is_no_slow_step() -> None:
    frame = paused(400, pause_s=3600.0)
    night = datetime(2024, 3, 31, 1, 59, 59, 900_000, tzinfo=UTC).timestamp()
    step_time = np.full(len(frame), 1.0) + 0.01 * np.sin(np.arange(len(frame)))
    frame = with_columns(frame, {SignalKey("sys.step_time"): step_time})
    frame = dataclasses.replace(frame, times=frame.times - frame.times[399] + night, time_kind=TimeKind.NAIVE)
    told = run(StepTime, [frame])
    assert told.loud == []
    assert told.result is not None
    assert told.result.verdict is Verdict.PASS
    assert "a pause or none, that cannot be told" in told.result.what
    assert "lone slow" not in told.result.what


@pytest.mark.parametrize(("base", "skips"), [(1711850399.0, True), (1711936799.0, False)])
def test_a_job_that_is_stopped_in_the_night_of_the_change(base: float, skips: bool) -> None:
    frame = paused()
    frame = dataclasses.replace(frame, times=frame.times - frame.times[-1] + base, time_kind=TimeKind.NAIVE)
    detector = StepTime(Thresholds(), {})
    list(detector.update(frame))
    said = list(detector.note(Note("run.log", 5, 5, NoteKind.CANCELLED, "", 600.0, base + 3660.0, TimeKind.NAIVE)))
    (stall,) = [each for each in said if each.kind == "stall"]
    assert stall.severity is (Severity.INFO if skips else Severity.WARN)
    assert stall.what.endswith("then the job was stopped (usual gap 1 s)")
    assert ("cannot be told" in stall.what) == skips
