"""Frames of one row, as a run that is followed live gives them: the same answers as whole histories, at less work."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import Found
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.score_series import ScoreSeries
from trainmon.monitor.stats.resolution import PrintResolution
from trainmon.monitor.stats.rolling_share import RollingShare
from trainmon.tails.clock import SystemClock
from trainmon.tails.formats.jsonl import JsonLines

LOSS = SignalKey("loss.train")
VALUES = st.lists(
    st.one_of(
        st.floats(0.5, 2.0).map(lambda x: round(x, 3)), st.sampled_from([0.0, -1.0, 9.5, float("inf"), float("nan")])
    ),
    min_size=1,
    max_size=120,
)


def frame_of(values: list[float], first: int = 0) -> Frame:
    steps = np.arange(first, first + len(values), dtype=np.float64)
    return Frame(0, "log", steps, steps, steps.astype(np.int64), {LOSS: np.array(values, np.float64)})


@given(VALUES)
def test_spikes_are_the_same_row_by_row(values: list[float]) -> None:
    rule = SpikeRule(20, 6.0, 0.1, 10, 200, 20)
    whole, single = SpikeTrack(LOSS, rule), SpikeTrack(LOSS, rule)
    found_whole: list[object] = []
    whole.feed(frame_of(values), found_whole)  # type: ignore[arg-type]
    flags, found_single = [], []
    for row, value in enumerate(values):
        found: list[tuple[int, object]] = []
        single.feed(frame_of([value], row), found)  # type: ignore[arg-type]
        flags += [row for _ in single.flags]
        found_single += [said for _, said in found]
    assert flags == whole.flags
    assert found_single == [said for _, said in found_whole]  # type: ignore[misc]
    assert (single.judged, single.highest, single.highest_step) == (
        whole.judged,
        whole.highest,
        whole.highest_step,
    ) or (np.isnan(single.highest_step) and np.isnan(whole.highest_step))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(40, 400),
    st.lists(st.tuples(st.integers(0, 399), st.sampled_from([0.3, 1.2, 1.4, 3.0, float("nan")])), max_size=12),
    st.lists(st.integers(1, 70), min_size=1, max_size=8),
    st.booleans(),
)
def test_spikes_are_the_same_however_a_long_run_is_cut(
    seed: int, length: int, marks: list[tuple[int, float]], cuts: list[int], falling: bool
) -> None:
    noise = np.random.default_rng(seed).normal(0.0, 0.03, length)
    values = (2.0 + 3.0 * np.exp(-np.arange(length) / 60.0) * falling) * np.exp(noise)
    for row, factor in marks:
        values[row % length] *= factor
    rule = SpikeRule(20, 6.0, 0.1, 10, 200, 20)
    whole, pieces = SpikeTrack(LOSS, rule), SpikeTrack(LOSS, rule)
    found: tuple[Found, Found] = ([], [])
    whole.feed(frame_of(values.tolist()), found[0])
    flags: list[int] = []
    at = turn = 0
    while at < length:
        size = cuts[turn % len(cuts)]
        said: Found = []
        pieces.feed(frame_of(values[at : at + size].tolist(), at), said)
        flags += [at + row for row in pieces.flags]
        found[1].extend((at + row, what) for row, what in said)
        at, turn = at + size, turn + 1
    assert flags == whole.flags
    assert found[1] == found[0]


@given(VALUES, st.lists(st.integers(1, 40), min_size=1))
def test_scores_for_drawing_do_not_depend_on_the_cut_or_on_who_looked(values: list[float], cuts: list[int]) -> None:
    one, many = (ScoreSeries("loss.train", "loss", 20, 6.0, 1.1) for _ in range(2))
    one.add(frame_of(values))
    at = 0
    for size in cuts * len(values):
        if at >= len(values):
            break
        many.add(frame_of(values[at : at + size], at))
        many.view()
        at += size
    whole, pieces = one.view(), many.view()
    assert (whole is None) == (pieces is None)
    if whole is not None and pieces is not None:
        assert many.view() is pieces  # nothing came: nothing is worked out again
        for name in ("steps", "values", "attempts", "times"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.integers(1, 40))
def test_shares_one_by_one_and_together(answers: list[bool], window: int) -> None:
    one, many = RollingShare(window), RollingShare(window)
    single = [float(one.extend(np.array([answer]))[0]) for answer in answers]
    assert single == many.extend(np.array([*answers])).tolist()
    assert one.value == many.value
    one.clear()
    assert len(one) == 0
    assert one.extend(np.array([True])).tolist() == [1.0]


@given(
    st.lists(
        st.floats(-1e6, 1e6).flatmap(lambda x: st.sampled_from([x, round(x, 2), round(x)])), min_size=17, max_size=60
    )
)
def test_print_resolution_one_by_one_and_together(values: list[float]) -> None:
    one, many = PrintResolution(), PrintResolution()
    single = [(index, half) for index, x in enumerate(values) for _, half in [*one.extend(np.array([x]))][1:]]
    assert single == [*many.extend(np.array(values))][1:]


class _Counting(Detector):
    """Counts how often it is asked."""

    id = "test.counting"
    name = "Counting"
    signals = ("loss.train",)
    asked = 0
    frames: ClassVar[list[int]] = []

    def update(self, frame: Frame) -> list[object]:  # type: ignore[override]
        """Finds nothing."""
        _Counting.frames.append(len(frame))
        return []

    def result(self, view: CheckView) -> CheckResult:
        """Counts."""
        del view
        _Counting.asked += 1
        return CheckResult(self.id, self.name, Verdict.PASS, "asked")


def test_verdicts_are_worked_out_once_for_what_came() -> None:
    engine = RunEngine("run", "run", clock=SystemClock(), detectors=(_Counting,))
    lines = [b'{"step": %d, "loss": 2.0}\n' % step for step in range(4)]
    reader, offset = JsonLines("log"), 0
    _Counting.asked = 0
    for number, line in enumerate(lines):
        engine.feed("log", reader.feed(line, offset, number + 1))
        offset += len(line)
        for _ in range(5):
            engine.settle()
            engine.checks()
        assert _Counting.asked == number + 1


def test_rows_that_come_fast_are_judged_together_and_before_anybody_hears_of_them() -> None:
    engine = RunEngine("run", "run", clock=SystemClock(), detectors=(_Counting,))
    reader, offset = JsonLines("log"), 0
    _Counting.frames = []
    for step in range(60):
        line = b'{"step": %d, "loss": 2.0}\n' % step
        engine.feed("log", reader.feed(line, offset, step + 1))
        offset += len(line)
        if step == 20:
            assert engine.steps is not None
            assert (engine.steps.last, _Counting.frames) == (20.0, [21])
    events = engine.events
    assert (_Counting.frames, engine.events) == ([21, 39], events)
    shown: list[list[float]] = []
    engine.on_frame = lambda frame: shown.append(frame.steps.tolist())  # who wants each row gets it at once
    engine.feed("log", reader.feed(b'{"step": 60, "loss": 2.0}\n', offset, 61))
    assert shown == [[60.0]]


def test_rows_that_wait_come_before_those_of_a_file_met_later() -> None:
    engine = RunEngine("run", "run", clock=SystemClock(), detectors=(_Counting,))
    _Counting.frames = []
    engine.feed("log", JsonLines("log").feed(b'{"step": 1, "loss": 2.0}\n', 0, 1))
    engine.feed("other", JsonLines("other").feed(b'{"step": 2, "mfu": 0.4}\n', 0, 1))
    assert _Counting.frames[:1] == [1]
    engine.settle()
    assert engine.steps is not None
    assert (engine.steps.first, engine.steps.count) == (1.0, 2)
