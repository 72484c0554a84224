from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails.give_way import MOST_S, WORK_S, GiveWay

LONG_S = 30.0  # what does not come by then is missing


@pytest.fixture(autouse=True)
def _turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


class Worker:
    """A thread that comes to a seam of its work each time it is told to go on."""

    def __init__(self, way: GiveWay) -> None:
        self._way = way
        self._go_on = threading.Semaphore(0)
        self._passed = threading.Semaphore(0)
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while self._go_on.acquire():
            self._way.give()
            self._passed.release()

    def go_on(self) -> None:
        self._go_on.release()

    def has_passed(self, within_s: float = LONG_S) -> bool:
        return self._passed.acquire(timeout=within_s)


def test_who_works_waits_until_the_key_is_answered() -> None:
    way = GiveWay(FakeClock())
    worker = Worker(way)
    way.ask()
    worker.go_on()
    assert not worker.has_passed(within_s=0.02)
    way.done()
    assert worker.has_passed()


def test_nobody_waits_when_no_key_was_pressed_or_its_time_is_over() -> None:
    clock = FakeClock()
    way = GiveWay(clock)
    worker = Worker(way)
    worker.go_on()
    assert worker.has_passed()
    way.ask()
    clock.sleep(MOST_S)
    assert not way.is_asked
    worker.go_on()
    assert worker.has_passed()


def test_some_work_is_done_between_two_waits_however_fast_somebody_types() -> None:
    clock = FakeClock()
    way = GiveWay(clock)
    way.ask()
    assert way.give()  # nobody answers: it goes on by itself
    way.ask()
    assert not way.give()
    clock.sleep(2 * WORK_S)
    assert way.is_asked
    assert way.give()


def test_the_interpreter_changes_hands_sooner_until_the_answer_is_drawn() -> None:
    way, before = GiveWay(), sys.getswitchinterval()
    way.ask()
    way.ask()
    assert sys.getswitchinterval() < before / 10
    way.done()
    way.done()
    assert sys.getswitchinterval() == pytest.approx(before)
