"""What somebody looks at overtakes all else, and of each run nothing overtakes anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.test_session import append, named, rows
from trainmon.monitor import session as module
from trainmon.monitor.in_turn import Round, Waiting
from trainmon.monitor.session import Monitor
from trainmon.tails.reader import IntakeItem
from trainmon.tails.record import Parsed
from trainmon.tails.status import FileStatus
from trainmon.tails.tail import TailUpdate


def item(run: str, number: int) -> IntakeItem:
    path = f"{run}.log"
    return IntakeItem(run, path, TailUpdate(Parsed()), FileStatus(path, "", number, number, 0, 0, 0))


def queue(items: list[IntakeItem], most: int) -> Callable[[float], list[IntakeItem]]:
    """Gives them as a bounded queue does, some at each call."""

    def get(timeout_s: float) -> list[IntakeItem]:
        del timeout_s
        taken, items[:] = items[:most], items[most:]
        return taken

    return get


@given(st.lists(st.sampled_from("abcd"), max_size=300), st.sets(st.sampled_from("abcd")), st.integers(1, 64))
def test_nothing_is_lost_and_each_run_keeps_its_order(names: list[str], close: set[str], most: int) -> None:
    items = [item(name, number) for number, name in enumerate(names)]
    waiting = Waiting(queue(list(items), most))
    taken = []
    while (one := waiting.next(0.0, close.__contains__)) is not None:
        taken.append(one)
    assert len(taken) == len(items)
    for name in set(names):
        assert [one for one in taken if one.run_name == name] == [one for one in items if one.run_name == name]
    if len(items) <= most:
        assert [one.run_name in close for one in taken] == sorted((name in close for name in names), reverse=True)


def test_who_looks_elsewhere_meanwhile_gets_no_run_out_of_order() -> None:
    waiting = Waiting(queue([item(name, number) for number, name in enumerate("abab")], 64))
    taken = [waiting.next(0.0, close.__contains__) for close in ({"b"}, {"a"}, {"b"}, {"a"})]
    assert [(one.run_name, one.status.size_bytes) for one in taken if one is not None] == [
        ("b", 1),
        ("a", 0),
        ("b", 3),
        ("a", 2),
    ]


def test_no_more_is_held_than_can_be_taken_soon() -> None:
    items = [item("a", number) for number in range(1000)]
    waiting = Waiting(queue(items, 64))
    waiting.next(0.0, lambda _: False)
    waiting.next(0.0, lambda _: False)
    assert len(items) >= 1000 - 2 * 64


def test_a_round_visits_each_run_once_and_stops_between() -> None:
    visited: list[str] = []
    one = Round(0.25, iter([float(number) for number in range(100)]).__next__)
    one.begin("abc", now_s=0.0)
    ends = []
    while one:
        ends.append(one.go(visited.append, 0.5))
    assert (visited, ends) == (["a", "b", "c"], [False, False, True])
    assert one.due_s == pytest.approx(3.0 / 0.25)


class _Soon:
    """Rounds of the others, one behind the other."""

    interval_s = 0.05

    def note(self, now_s: float, *, is_busy: bool, records: int) -> float:
        del now_s, is_busy, records
        return self.interval_s


def test_news_of_a_run_that_is_looked_at_wait_for_no_round_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLICE_S", 0.0)  # one run at a time
    monkeypatch.setattr(module, "Pace", _Soon)
    monkeypatch.setattr(module, "PUBLISH_SHARE", 1e9)
    monkeypatch.setattr(module, "PUBLISH_INTERVAL_S", 0.0)
    others = "abcdefghijkl"
    logs = {name: tmp_path / name / "metrics.jsonl" for name in ("seen", *others)}
    for log in logs.values():
        log.parent.mkdir()
        log.write_bytes(rows(1, 50))
    session = Monitor([str(tmp_path)], cwd=tmp_path)  # its engine is driven by hand

    def work_until(holds: Callable[[], bool]) -> None:
        end = monotonic() + 20
        while not holds():
            assert monotonic() < end
            session._turn()
            session._publish_when_due()

    try:
        work_until(lambda: len(session.latest().runs) == len(logs) and not session.latest().reading)
        session.attend(frozenset({"seen"}))
        work_until(lambda: not session._round)
        session._others_at_s = float("inf")
        for name in others:
            append(logs[name], rows(51, 51))
        work_until(lambda: all(session._runs[name].log_tail[-1].line_no == 51 for name in others))
        append(logs["seen"], rows(51, 51))
        while session._intake._queue.empty():
            sleep(0.01)
        session._others_at_s = session._beat_at_s = 0.0
        session._publish_when_due()
        assert session._round, "a round of twelve is under way"
        work_until(lambda: named(session.latest(), "seen").last_step == 51)
        assert session._round, "it was told while others still wait for their turn"
        session._others_at_s = 0.0
        work_until(lambda: all(run.last_step == 51 for run in session.latest().runs))
    finally:
        session.stop()
