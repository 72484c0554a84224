"""Rhythm, pauses and silence: slow but expected is told apart from slow, bursts from a standstill."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.judging import Pulse, job_state
from trainmon.monitor.job.pauses import expected_pause
from trainmon.monitor.job.rhythm import Rhythm
from trainmon.monitor.job.state import Pause
from trainmon.monitor.snapshot import SeriesView, State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Block, Note, NoteKind, TimeKind

LOG = "train.log"


def block(steps: list[float], times: list[float] | None = None) -> Block:
    count = len(steps)
    return Block(
        LOG,
        np.array(steps),
        np.full(count, np.nan) if times is None else np.array(times),
        np.zeros(count, np.int64),
        np.arange(count, dtype=np.int64),
        {"loss": np.ones(count)},
        time_kind=TimeKind.NONE if times is None else TimeKind.ABSOLUTE,
    )


def saved(step: float) -> Note:
    return Note(LOG, int(step), 0, NoteKind.CHECKPOINT_SAVED, f"saved step {step}", step=step)


def evaluated(*steps: float) -> dict[SignalKey, SeriesView]:
    key = SignalKey("eval.nll")
    values = np.array(steps)
    none = np.zeros(0)
    view = SeriesView(key, "", values, values, values, values, values.astype(int), none, len(steps), 1.0)
    return {key: view}


def test_pauses_are_learned_with_the_step_before_them() -> None:
    rhythm, time, times = Rhythm(), 0.0, []
    for step in range(1, 101):
        times.append(time)
        time += 60.0 if step % 25 == 0 else 2.0
    rhythm.add(block([float(step) for step in range(1, 101)], times), 0.0, live=False)
    pulse = rhythm.pulse(1.0, seen_growing=True)
    assert pulse.gap_s == 2.0
    assert [(pause.step, pause.gap_s) for pause in pulse.pauses] == [(25.0, 60.0), (50.0, 60.0), (75.0, 60.0)]


def test_a_pause_is_expected_where_the_rhythm_puts_the_next_one() -> None:
    pauses = [Pause(25.0, 60.0), Pause(50.0, 80.0), Pause(75.0, 70.0)]
    found = expected_pause(pauses, [saved(25.0), saved(50.0), saved(75.0)], {}, 100.0, 1.0)
    assert found is not None
    assert (found.state, found.usual_s, found.longest_s) == (State.CHECKPOINTING, 70.0, 80.0)
    assert expected_pause(pauses, [], {}, 90.0, 1.0) is None
    assert expected_pause(pauses, [], {}, 75.0, 1.0) is None
    assert expected_pause(pauses[:1], [], {}, 50.0, 1.0) is None
    evaluating = expected_pause(pauses, [], evaluated(25.0, 50.0, 75.0), 100.0, 1.0)
    assert evaluating is not None
    assert evaluating.state is State.EVALUATING


def test_a_run_that_has_become_slow_makes_no_pauses() -> None:
    """Each record takes long, and nothing says that something is saved or evaluated."""
    pauses = [Pause(float(step), 6.0) for step in range(101, 109)]
    assert expected_pause(pauses, [], {}, 109.0, 1.0) is None
    apart = [Pause(10.0 * step, 6.0) for step in range(1, 9)]
    assert expected_pause(apart, [], {}, 90.0, 10.0) is None
    found = expected_pause(apart, [], {}, 90.0, 1.0)
    assert found is not None
    assert found.state is State.CHECKPOINTING


def test_pauses_without_a_rhythm_promise_nothing() -> None:
    pauses = [Pause(3.0, 60.0), Pause(50.0, 80.0), Pause(61.0, 70.0), Pause(90.0, 70.0)]
    assert expected_pause(pauses, [], {}, 100.0, 1.0) is None


def judged(pulse: Pulse, notes: list[Note], last: float) -> State:
    expected = expected_pause(pulse.pauses, notes, {}, last, 1.0)
    lines = {LOG: 10_000}
    return job_state(notes, lines, (1.0, last), 1000.0, pulse, Thresholds(), expected=expected).state


def test_a_long_save_is_no_standstill_and_the_same_silence_elsewhere_is() -> None:
    pauses = (Pause(25.0, 900.0), Pause(50.0, 1000.0), Pause(75.0, 950.0))
    notes = [saved(25.0), saved(50.0), saved(75.0)]
    pulse = Pulse(800.0, 3.0, seen_growing=True, gap_s=2.0, pauses=pauses)
    assert judged(pulse, notes, 100.0) is State.CHECKPOINTING
    assert judged(pulse, notes, 90.0) is State.HUNG
    assert judged(Pulse(3200.0, 3.0, True, 2.0, pauses), notes, 100.0) is State.HUNG


def test_a_save_that_the_log_announces_is_told_before_any_was_learned() -> None:
    note = Note(LOG, 20_000, 0, NoteKind.CHECKPOINT_SAVED, "Saving model checkpoint to out/5", step=5.0)
    assert judged(Pulse(200.0, 3.0, seen_growing=True, gap_s=2.0), [note], 5.0) is State.CHECKPOINTING
    assert judged(Pulse(2.0, 3.0, seen_growing=True, gap_s=2.0), [note], 5.0) is State.RUNNING


def test_bursts_of_a_buffered_writer_are_learned_from_arrivals() -> None:
    rhythm = Rhythm()
    for place in range(8):
        steps = [float(place * 40 + step) for step in range(40)]
        rhythm.add(block(steps), 120.0 * place, live=True)
    pulse = rhythm.pulse(100.0, seen_growing=True)
    assert (pulse.burst_s, pulse.burst_records, pulse.gap_s) == (120.0, 40.0, 3.0)
    assert judged(pulse, [], 320.0) is State.BUFFERED
    assert judged(Pulse(1300.0, 120.0, True, 3.0, (), 120.0, 40.0), [], 320.0) is State.HUNG


def test_records_that_come_one_by_one_are_no_bursts() -> None:
    rhythm = Rhythm()
    for step in range(50):
        rhythm.add(block([float(step)]), 20.0 * step, live=True)
    assert rhythm.pulse(1.0, seen_growing=True).burst_s is None


def test_slow_records_with_stamps_are_no_bursts_however_they_are_read() -> None:
    rhythm = Rhythm()
    for place in range(8):
        steps = [float(place * 4 + step) for step in range(4)]
        rhythm.add(block(steps, [5.0 * step for step in steps]), 20.0 * place, live=True)
    assert rhythm.pulse(1.0, seen_growing=True).burst_s is not None  # four records every 20 s, written 5 s apart
    rhythm = Rhythm()
    for place in range(8):
        steps = [float(place * 4 + step) for step in range(4)]
        rhythm.add(block(steps, [10.0 * step for step in steps]), 20.0 * place, live=True)
    assert rhythm.pulse(1.0, seen_growing=True).burst_s is None
