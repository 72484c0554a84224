"""Pages: once, then at most once an hour while open, never while acknowledged or snoozed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.logs import Line, engine, parsed, train
from tests.monitor.test_alerts import GRAD, said
from trainmon.monitor.alerts import AlertBook, incidents
from trainmon.monitor.assemble import assemble
from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.job import Pulse
from trainmon.monitor.paging import AGAIN_AFTER_S, Page, Pager
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.record import NoteKind


def broken(step: float = 100.0, signal=None, recovered: bool = False) -> tuple[Episode, ...]:  # type: ignore[no-untyped-def]
    book = AlertBook()
    more = {} if signal is None else {"signal": signal}
    book.apply("loss.spike", said(step=step, severity=Severity.FAIL, **more))
    if recovered:
        book.apply("loss.spike", said("recover", step=step + 50, severity=Severity.FAIL, **more))
    return book.episodes()


def ask(pager: Pager, episodes: tuple[Episode, ...], now_s: float) -> list[str]:
    return [page.reason for page in pager.due("run", incidents(episodes), episodes, now_s)]


def test_once_and_then_hourly_while_it_is_open() -> None:
    pager = Pager()
    told = [(t, ask(pager, broken(), float(t))) for t in range(0, 3 * 3600 + 1, 60)]
    assert [(t, reasons) for t, reasons in told if reasons] == [
        (0, ["new"]),
        (3600, ["open"]),
        (7200, ["open"]),
        (10800, ["open"]),
    ]


def test_recovery_is_told_once() -> None:
    pager = Pager()
    assert ask(pager, broken(recovered=True), 0.0) == []
    assert ask(pager, broken(), 0.0) == ["new"]
    assert ask(pager, broken(recovered=True), 60.0) == ["over"]
    assert ask(pager, broken(recovered=True), 9000.0) == []


def test_a_fault_that_flutters_is_sent_once_an_hour() -> None:
    pager = Pager()
    reasons = []
    for minute in range(120):
        episodes = broken(step=1000.0 * minute)
        reasons += ask(pager, episodes, 60.0 * minute)
    assert reasons == ["new", "again"]
    assert ask(pager, broken(signal=GRAD), 7300.0) == ["new"]  # another fault is another story


def test_acknowledged_and_snoozed_stay_silent() -> None:
    pager = Pager()
    seen = tuple(replace(one, acknowledged=True) for one in broken())
    snoozed = tuple(replace(one, snoozed_until=500.0) for one in broken())
    assert ask(pager, seen, 0.0) == []
    assert ask(pager, snoozed, 0.0) == []
    assert ask(pager, broken(), 600.0) == ["new"]


def test_what_was_sent_outlives_the_program() -> None:
    pager = Pager()
    ask(pager, broken(), 0.0)
    again = Pager(pager.state())
    assert ask(again, broken(), 60.0) == []
    assert ask(again, broken(), AGAIN_AFTER_S) == ["open"]
    assert ask(Pager({"odd": [], "worse": ["x", 1, 2]}), broken(), 0.0) == ["new"]


def test_runs_do_not_silence_each_other() -> None:
    pager = Pager()
    episodes = broken()
    for run in ("a", "b"):
        (page,) = pager.due(run, incidents(episodes), episodes, 0.0)
        assert page == Page(run, incidents(episodes)[0], "new")


@given(st.lists(st.tuples(st.floats(0, 5000), st.booleans(), st.integers(0, 2)), max_size=40))
def test_never_twice_within_the_hour(events: list[tuple[float, bool, int]]) -> None:
    pager = Pager()
    now, sent = 0.0, []
    for gap, recovered, number in events:
        now += gap
        episodes = broken(step=1000.0 * number, recovered=recovered)
        sent += [now for reason in ask(pager, episodes, now) if reason != "over"]
    assert all(later - earlier >= AGAIN_AFTER_S for earlier, later in pairwise(sent))


def test_the_end_of_a_job_can_be_acknowledged_and_is_the_faults_own_story() -> None:
    good = [train(step, 2.0 + 0.01 * (step % 5), grad_norm=0.5) for step in range(1, 60)]
    lines = good + [train(step, math.nan, grad_norm=math.nan) for step in range(60, 70)]
    lines.append(Line(note=NoteKind.CUDA_OOM))
    run = engine(detectors=None)
    run.feed("log", parsed(lines))
    run.settle()

    def look() -> RunSnapshot:
        return assemble(run, (), (), Pulse(None, None, False), live=False)

    (incident,) = [one for one in look().incidents if one.pages]
    end = next(one for one in look().episodes if one.check == "job.state")
    assert end.id in incident.episodes
    assert len(incident.episodes) > 1
    for episode in look().episodes:
        run.acknowledge(episode.id)
    assert not [one for one in look().incidents if one.pages]
