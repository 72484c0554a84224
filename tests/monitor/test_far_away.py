"""A run that nobody looks at closely is told anew for the sake of an age less often, of its state as soon as ever."""

from __future__ import annotations

from pathlib import Path

from tests.tails.clocks import FakeClock
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.snapshot import State
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.reader import IntakeItem
from trainmon.tails.tail import Tail


def followed(path: Path, clock: FakeClock) -> WatchedRun:
    """A run of which a few records came, one a second, the newest now."""
    watched = WatchedRun(lambda _settings, _label: RunEngine("run", "run", clock=clock), clock)
    watched.expect([str(path)])
    tail = Tail(path, clock=clock)
    for step in range(1, 40):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"step {step}/1000 | loss {3 - 0.001 * step:.4f} | lr 3.0e-04\n")
        update = tail.poll(1 << 20)
        watched.take(IntakeItem("run", str(path), update, tail.status()))
        watched.settle()
        watched.snapshot(live=True)
        clock.now += 1.0
    return watched


def tellings(watched: WatchedRun, clock: FakeClock, *, closely: bool) -> tuple[int, float]:
    """How often it is told anew in a silence, and after how many seconds it is told to be no longer running."""
    count = 0
    for second in range(3600):
        if watched.looks_else(closely=closely):
            count += 1
            if watched.snapshot(live=True).state is not State.RUNNING:
                return count, second
        clock.now += 1.0
    raise AssertionError("it runs for ever")


def test_an_age_is_retold_less_often_and_a_state_as_soon(tmp_path: Path) -> None:
    near, far = FakeClock(), FakeClock()
    often, soon = tellings(followed(tmp_path / "a.log", near), near, closely=True)
    seldom, as_soon = tellings(followed(tmp_path / "b.log", far), far, closely=False)
    assert seldom < often / 2
    assert as_soon == soon
