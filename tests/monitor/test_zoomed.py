"""What was thinned is read again for a stretch: its own values, and nothing but its part of the file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.monitor.test_session import wait_until
from trainmon.monitor import series, session
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.room import Points
from trainmon.monitor.session import Monitor
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.watched import WatchedRun
from trainmon.tails import stretch
from trainmon.tails.clock import SystemClock
from trainmon.tails.discover import discover
from trainmon.tails.intake import read_all
from trainmon.tails.record import Block
from trainmon.tails.stretch import StepIndex

LOSS = SignalKey("loss.train")
STEPS = 40_000


@pytest.fixture(autouse=True)
def _short_series(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Points((4096, 4096, 4096), 0.5)
    monkeypatch.setattr(series, "MOST_POINTS", few)
    monkeypatch.setattr(session, "watched_points", lambda runs: few)


def write(log: Path, how: str = "jsonl") -> np.ndarray:
    """A long log; its losses."""
    rng = random.Random(3)
    losses = [round(2 + rng.gauss(0, 0.05) + (3 if step % 9000 == 777 else 0), 5) for step in range(STEPS)]
    with log.open("w") as file:
        if how == "csv":
            file.write("step,loss,lr\n")
        for step, loss in enumerate(losses):
            text = json.dumps({"step": step, "loss": loss, "lr": 1e-3}) if how == "jsonl" else f"{step},{loss},0.001"
            file.write(text + "\n")
    return np.array(losses)


def watched(log: Path) -> WatchedRun:
    clock = SystemClock()
    (files,) = discover([str(log)], log.parent).runs
    run = WatchedRun(lambda *_: RunEngine("run", str(log), clock=clock), clock)
    for item in read_all(files, clock):
        run.take(item)
    run.settle()
    run.snapshot(live=True)
    return run


def part(run: RunSnapshot, first: float, last: float) -> tuple[list[float], list[float]]:
    view = run.series[LOSS]
    inside = (view.steps >= first) & (view.steps <= last)
    assert (np.diff(view.steps) >= 0).all()
    return view.steps[inside].tolist(), view.values[inside].tolist()


@pytest.mark.parametrize("how", ["jsonl", "csv"])
def test_a_stretch_is_drawn_by_its_own_values(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / f"metrics.{how}"
    losses = write(log, how)
    run = watched(log)
    thinned = run.snapshot(live=True).series[LOSS]
    assert len(thinned.steps) < STEPS / 2
    read: list[int] = []
    pread = os.pread

    def counted(fd: int, count: int, offset: int) -> bytes:
        data = pread(fd, count, offset)
        read.append(len(data))
        return data

    monkeypatch.setattr(stretch.os, "pread", counted)
    again = run.stretch_to_read(9000.0, 9900.0)
    assert again is not None
    run.show_stretch(again.read(SystemClock()))
    assert sum(read) < 0.2 * log.stat().st_size  # the head and its part, not the log
    shown = run.snapshot(live=True)
    steps, values = part(shown, 9000.0, 9900.0)
    assert steps == list(range(9000, 9901))
    assert values == losses[9000:9901].tolist()
    view = shown.series[LOSS]
    assert (view.low.min(), view.high.max(), view.count, view.last) == (losses.min(), losses.max(), STEPS, losses[-1])
    assert run.snapshot(live=True).series[LOSS] is view  # nothing came: nothing is put together anew
    tail = run.stretch_to_read(STEPS - 50.0, STEPS - 1.0)
    assert tail is None  # the newest values are raw as they are


def test_what_the_file_no_longer_holds_is_left_as_it_was(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    write(log)
    run = watched(log)
    before = run.snapshot(live=True).series[LOSS]
    again = run.stretch_to_read(9000.0, 9900.0)
    assert again is not None
    log.write_text(log.read_text().replace('"loss": 1', '"loss": 7').replace('"loss": 2', '"loss": 1'))
    run.show_stretch(again.read(SystemClock()))
    assert run.snapshot(live=True).series[LOSS].values.tolist() == before.values.tolist()
    log.unlink()
    run.show_stretch(again.read(SystemClock()))
    assert run.snapshot(live=True).series[LOSS].values.tolist() == before.values.tolist()


def test_a_session_reads_what_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    losses = write(log)
    session = Monitor([str(log)], cwd=tmp_path)
    session.start()
    try:
        wait_until(lambda: not session.latest().reading and bool(session.latest().runs))
        (run,) = session.latest().runs
        assert len(part(run, 9000.0, 9900.0)[0]) < 900
        session.look_closely(run.name, 9000.0, 9900.0)
        wait_until(lambda: part(session.latest().runs[0], 9000.0, 9900.0)[1] == losses[9000:9901].tolist())
    finally:
        session.stop()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 4), min_size=1, max_size=400), st.lists(st.integers(1, 50), min_size=1), st.data())
def test_a_span_holds_all_rows_of_its_steps(gaps: list[int], cuts: list[int], data: st.DataObject) -> None:
    steps = np.cumsum(gaps).astype(np.float64)
    offsets = np.arange(len(steps)) * 10
    index = StepIndex()
    index.spacing = data.draw(st.integers(1, 16))
    at = 0
    for cut in cuts * len(gaps):
        where = slice(at, at + cut)
        if at < len(steps):
            index.add(Block("log", steps[where], steps[where], offsets[where], offsets[where] // 10 + 1, {}))
        at += cut
    first = data.draw(st.floats(-5, 1700))
    last = first + data.draw(st.floats(0, 300))
    span = index.span(first, last, 10 * len(steps))
    assert span is not None
    inside = offsets[(steps >= first) & (steps <= last)]
    assert ((inside >= span[0]) & (inside < span[1])).all()


def test_an_index_is_bounded_and_steps_that_go_back_tell_no_place() -> None:
    index = StepIndex()
    for begin in range(0, 1_000_000, 10_000):
        steps = np.arange(begin, begin + 10_000, dtype=np.float64)
        index.add(Block("log", steps, steps, (steps * 10).astype(np.int64), steps.astype(np.int64), {}))
    assert len(index) <= 4097
    begin, end = index.span(500_000.0, 501_000.0, 10_000_000) or (0, 0)
    assert begin <= 5_000_000
    assert 5_010_000 < end < 5_100_000
    steps = np.arange(400_000, 600_000, dtype=np.float64)  # again, from a checkpoint
    index.add(Block("log", steps, steps, (steps * 10 + 10_000_000).astype(np.int64), steps.astype(np.int64), {}))
    assert (index.span(500_000.0, 501_000.0, 20_000_000) or (0, 0))[0] > 10_000_000  # the newest
    assert index.span(399_000.0, 1_100_000.0, 20_000_000) is None
