"""Rules D1-D17 as far as they are worked out here."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.monitor.logs import Line, engine, feed_cut, parsed, plain_state, read
from trainmon.monitor.derive.derivation import Draft
from trainmon.monitor.derive.system import peak_flops
from trainmon.monitor.derive.training import ReplayRule
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import NoteKind, TimeKind


def series(lines, name, labels=(), **options):  # type: ignore[no-untyped-def]
    options.setdefault("detectors", ())
    view = read(lines, **options).series_views().get(SignalKey(name, labels))
    return None if view is None else dict(zip(view.steps.tolist(), view.values.tolist(), strict=True))


def timed(steps, seconds, start=1e9, **values):  # type: ignore[no-untyped-def]
    return [
        Line({"loss": 2.0, **values}, float(step), time=start + 0.5 + number * seconds)
        for number, step in enumerate(steps)
    ]


def test_step_time_from_time_stamps_within_an_attempt() -> None:
    lines = timed([10, 20, 30], 25.0) + timed([10, 20], 50.0, start=2e9)
    found = read(lines, detectors=()).series_views()[SignalKey("sys.step_time")]
    assert list(zip(found.attempts.tolist(), found.steps.tolist(), found.values.tolist(), strict=True)) == [
        (0, 20.0, 2.5),
        (0, 30.0, 2.5),
        (1, 20.0, 5.0),
    ]
    assert "time stamps" in found.derived


def test_step_time_that_is_logged_is_not_derived() -> None:
    lines = timed([1, 2, 3], 25.0, **{"elapsed time per iteration (ms)": 900.0})
    assert series(lines, "sys.step_time") == {1.0: 0.9, 2.0: 0.9, 3.0: 0.9}


def test_stamps_of_whole_seconds_are_differenced_over_a_while() -> None:
    lines = [Line({"loss": 2.0}, float(step), time=float(1_000_000_000 + step * 13 // 10)) for step in range(1, 101)]
    found = series(lines, "sys.step_time")
    assert found is not None
    assert len(found) < 10
    assert all(value == pytest.approx(1.3, rel=0.06) for value in found.values())


def test_arrival_times_and_clocks_set_back_give_no_step_time() -> None:
    made = engine(detectors=())
    block = parsed(timed([1, 2, 3], 25.0)).blocks[0]
    arrival = replace(block, time_kind=TimeKind.ARRIVAL)
    made.feed("log", type(parsed([]))([arrival]))
    assert SignalKey("sys.step_time") not in made.series_views()
    back = [Line({"loss": 2.0}, float(step), time=1e9 + 0.5 - step * 30.0) for step in range(1, 5)]
    assert series(back, "sys.step_time") is None


def test_tokens_per_second() -> None:
    batch = [Line(fact=("batch_size", 8.0)), Line(fact=("seq_length", 1024.0))]
    assert series(batch + timed([1, 2], 2.0), "sys.tokens_per_second") == {2.0: 4096.0}
    seen = [
        Line({"loss": 2.0, "tokens_seen": 1000.0 * step}, float(step), time=1e9 + 0.5 + step * 10.0)
        for step in (1, 2, 4)
    ]
    assert series(seen, "sys.tokens_per_second") == {2.0: 100.0, 4.0: 100.0}
    assert series(timed([1, 2], 2.0), "sys.tokens_per_second") is None


def test_compute_rate_and_mfu() -> None:
    facts = {"parameters": 1e9, "world_size": 8.0, "gpu": "NVIDIA H100 80GB HBM3", "precision": "bf16"}
    lines = [Line({"loss": 2.0, "tokens_per_second": 1e5}, 1.0)]
    assert series(lines, "sys.compute_rate", facts=facts) == {1.0: 7.5e13}
    assert series(lines, "sys.mfu", facts=facts) == {1.0: pytest.approx(7.5e13 / 9.89e14)}
    assert series(lines, "sys.mfu", facts={**facts, "precision": "fp8"}) is None
    assert peak_flops("some other card", "bf16") is None


def test_clip_rate_counts_the_last_window() -> None:
    norms = [0.5] * 30 + [2.0] * 30 + [0.5] * 200
    lines = [Line({"loss": 2.0, "grad_norm": norm}, float(step)) for step, norm in enumerate(norms)]
    found = series(lines, "grad.clip_rate")
    assert found is not None
    assert min(found) == 19.0
    for step, share in found.items():
        window = norms[max(int(step) - 99, 0) : int(step) + 1]
        assert share == pytest.approx(sum(norm > 1.0 for norm in window) / len(window))
    loose = series([Line(fact=("clip_threshold", 3.0)), *lines], "grad.clip_rate")
    assert loose is not None
    assert set(loose.values()) == {0.0}


def test_worst_rank_skips_ranks_that_did_not_report() -> None:
    lines = [
        Line({"loss{rank=0}": 2.0, "loss{rank=1}": 2.5}, 1.0),
        Line({"loss{rank=0}": 2.0}, 2.0),
        Line({"loss{rank=0}": 1.9, "loss{rank=1}": 1.8}, 3.0),
    ]
    assert series(lines, "loss.worst_rank") == {1.0: 2.5, 3.0: 1.9}


def test_memory_share_needs_the_capacity() -> None:
    lines = [Line({"loss": 2.0, "peak memory (GiB)": 40.0}, 1.0)]
    assert series(lines, "sys.memory_share") is None
    found = series(lines, "sys.memory_share", facts={"gpu_memory_bytes": 80.0 * 2**30})
    assert found == {1.0: 0.5}


def test_expert_balance() -> None:
    from trainmon.monitor.derive.experts import balance

    violation, entropy = balance(np.array([[4.0, np.nan, 0.0], [0.0, 2.0, 0.0], [0.0, 2.0, 0.0], [0.0, np.nan, 0.0]]))
    assert violation[0] == 3.0
    assert violation[1] == 0.0
    assert entropy[0] == 0.0
    assert entropy[1] == pytest.approx(1.0)
    assert math.isnan(violation[2])
    assert math.isnan(entropy[2])


def test_skipped_steps_are_counted_once_a_line() -> None:
    lines = [
        Line({"loss": 2.0}, 1.0),
        Line(note=NoteKind.SKIPPED_STEP),
        Line(note=NoteKind.LOSS_SCALE_OVERFLOW),
        Line({"loss": 2.0}, 2.0),
        Line({"loss": 2.0}, 3.0),
    ]
    assert series(lines, "count.skipped_steps") == {2.0: 2.0}


def test_replayed_steps_are_held_against_the_first_time() -> None:
    first = [Line({"loss": 3.0 - step / 100}, float(step)) for step in range(1, 51)]
    again = [Line({"loss": 3.0 - step / 100 + (step == 45) * 0.5}, float(step)) for step in range(41, 60)]
    found = series([*first, *again], "count.bad_replays")
    assert found == {float(step): float(step >= 45) for step in range(41, 51)}
    from_scratch = [Line({"loss": 3.5 - step / 100}, float(step)) for step in range(1, 30)]
    assert series([*first, *from_scratch], "count.bad_replays") is None


def test_perplexity_and_bits_per_byte() -> None:
    lines = [Line({"loss": 2.0}, 1.0), Line({"val_loss": 2.0}, 1.0), Line({"val_loss": 5000.0}, 2.0)]
    assert series(lines, "eval.perplexity") == {1.0: pytest.approx(math.exp(2.0))}
    assert series(lines, "eval.bits_per_byte") is None
    found = series(lines[:2], "eval.bits_per_byte", facts={"bytes_per_token": 4.0})
    assert found == {1.0: pytest.approx(2.0 / 4.0 / math.log(2.0))}


def test_the_spike_score_is_a_function_of_the_values_alone() -> None:
    random = np.random.default_rng(0)
    values = 2.0 + 0.01 * random.normal(size=3000)
    values[[700, 2500]] = 4.0
    lines = [Line({"loss": float(value)}, float(step)) for step, value in enumerate(values)]
    key = SignalKey("spike.score", (("of", "loss"),))
    whole = read(lines, detectors=()).series_views()[key]
    watched = engine(detectors=())
    for begin in range(0, 3000, 137):
        watched.feed("log", parsed(lines[begin : begin + 137], begin + 1))
        watched.series_views()
    assert np.array_equal(watched.series_views()[key].values, whole.values)
    window = values[2400:2500]
    logs = np.log(window)
    spread = np.median(np.abs(logs - np.median(logs)))
    expected = 0.6745 * (math.log(4.0) - np.median(logs)) / spread
    assert whole.values[whole.steps == 2500.0][0] == pytest.approx(expected, rel=1e-6)


def test_ranks_that_write_rows_of_their_own_are_taken_together() -> None:
    lines = []
    for step in range(1, 6):
        lines += [
            Line({f"loss{{rank={rank}}}": 2.0 + rank / 10 + (rank == 1) * step}, float(step)) for rank in range(3)
        ]
    found = series(lines, "loss.worst_rank")
    assert found == {float(step): 2.1 + step for step in range(1, 6)}


def test_echoes_of_ranks_that_lag_are_no_restarts() -> None:
    lines = []
    for step in range(2, 40):
        lines.append(Line({"loss": 2.0 - step / 100}, float(step)))
        lines.append(Line({"loss{rank=1}": 2.0}, float(step - 1)))
    assert read(lines, detectors=()).attempts == ((2.0, 39.0),)


@st.composite
def odd_rows(draw: st.DrawFn) -> list[Line]:
    """Rows that feed several rules at once, in any order of steps."""
    lines: list[Line] = []
    step = 1
    for _ in range(draw(st.integers(1, 25))):
        step += draw(st.sampled_from([0, 0, 1, 1, -1]))
        values: dict[str, float | None] = {}
        for rank in draw(st.lists(st.integers(0, 3), max_size=3)):
            values[f"loss{{rank={rank}}}"] = draw(st.sampled_from([1.0, 2.0, 3.0]))
        for key in ("loss", "tokens_seen", "samples_per_second", "iteration time (ms)", "grad_norm"):
            if draw(st.booleans()):
                values[key] = step * 100.0
        if values:
            time = draw(st.sampled_from([None, 1e9 + step * 3.0, 1e9 + step * 3.25]))
            lines.append(Line(values, float(step), time=time))
    return lines


@settings(max_examples=100, deadline=None)
@given(lines=odd_rows(), cuts=st.lists(st.integers(0, 25), max_size=5))
@example(  # ranks that are first heard of after a restart, which a block's columns tell of before
    lines=[
        Line({"loss{rank=0}": 1.0, "grad_norm": 100.0}, 1.0, time=1e9 + 3),
        Line({"loss{rank=0}": 1.0, "loss{rank=3}": 1.0}, 0.0, time=1e9),
        Line({"loss{rank=0}": 1.0, "loss{rank=2}": 1.0}, 0.0, time=1e9),
        Line({"loss{rank=1}": 1.0}, 0.0, time=1e9),
    ],
    cuts=[1],
)
@example(  # step times that are logged from the second start on: those before are told by the time stamps
    lines=[
        Line({"loss{rank=1}": 3.0, "loss{rank=3}": 1.0, "grad_norm": 200.0}, 2.0, time=1e9 + 6),
        Line({"loss": 100.0}, 1.0, time=1e9 + 3),
        Line({"grad_norm": 200.0}, 2.0, time=1e9 + 6),
        Line({"grad_norm": 300.0}, 3.0, time=1e9 + 9.75),
        Line({"samples_per_second": 400.0, "iteration time (ms)": 400.0}, 4.0, time=1e9 + 13),
    ],
    cuts=[1],
)
def test_the_cut_does_not_matter_to_any_rule(lines: list[Line], cuts: list[int]) -> None:
    facts = {"seq_length": 16.0, "world_size": 2.0, "parameters": 1e9}
    whole, cut = engine(facts=facts), engine(facts=facts)
    feed_cut(whole, lines, [])
    feed_cut(cut, lines, cuts)
    assert plain_state(cut) == plain_state(whole)


def test_a_resume_right_behind_the_end_holds_nothing_against_it() -> None:
    """What was logged before is let go of with the first row that lies beyond all of it."""
    rule = ReplayRule()
    for attempt, steps in enumerate((range(1, 4001), range(4001, 8001))):
        if attempt:
            rule.new_attempt()
        for first in range(0, 4000, 20):
            here = np.array(steps[first : first + 20], float)
            losses = {SignalKey("loss.train"): np.full(20, 2.0)}
            rule.apply(Draft(Frame(attempt, "log", here, here, here.astype(int), losses), set(), {}))
    assert not rule._old
    assert not rule._before
