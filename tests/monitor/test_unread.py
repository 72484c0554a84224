"""Before a history is read to its end nothing passes; what is wrong in the part that was read stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.tails.clocks import FakeClock
from tests.tui import sample
from trainmon.monitor.blank import blank_run
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.session import Monitor
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.unread import while_read
from trainmon.monitor.watched import WatchedRun
from trainmon.tails.clock import SystemClock
from trainmon.tails.reader import IntakeItem
from trainmon.tails.tail import Tail


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.NO_DATA, Verdict.NOT_APPLICABLE])
def test_nothing_passes_before_all_is_read(verdict: Verdict) -> None:
    run = replace(sample.fleet().runs[0], progress=0.4, verdict=verdict)
    told = while_read(run)
    assert told.verdict is Verdict.NO_DATA
    assert "read" in told.verdict_reason
    assert not any(step.verdict in (Verdict.PASS, Verdict.NOT_APPLICABLE) for step in told.triage)


@pytest.mark.parametrize("verdict", [Verdict.WARN, Verdict.FAIL])
def test_what_is_wrong_already_stands(verdict: Verdict) -> None:
    run = replace(sample.fleet().runs[0], progress=0.4, verdict=verdict, verdict_reason="seen")
    told = while_read(run)
    assert (told.verdict, told.verdict_reason) == (verdict, "seen")
    kept = [step for step in run.triage if step.verdict in (Verdict.WARN, Verdict.FAIL)]
    assert [step for step in told.triage if step.verdict is not Verdict.NO_DATA] == kept


def test_a_run_that_nothing_came_of_is_told_without_an_engine_of_its_own() -> None:
    blank = blank_run(SystemClock(), Thresholds())

    def make(_settings: object) -> object:
        raise AssertionError("an engine was made")

    watched = WatchedRun(make, SystemClock())  # type: ignore[arg-type]
    watched.expect(["a/train.log"])
    assert watched.is_untouched
    told = watched.snapshot_as(blank, "a", "a")
    assert (told.name, told.verdict, told.progress) == ("a", Verdict.NO_DATA, 0.0)
    assert [file.path for file in told.files] == ["a/train.log"]


def test_what_is_read_to_its_end_is_judged_by_all_of_it_at_once(tmp_path: Path) -> None:
    log, clock = tmp_path / "train.log", FakeClock()
    log.write_text("".join(f"step {step} | loss {3 - step / 1000:.4f}\n" for step in range(1, 601)), encoding="utf-8")
    tail = Tail(log, clock=clock)
    watched = WatchedRun(lambda *_: RunEngine("run", str(log), clock=clock), clock)
    watched.expect([str(log)])
    while not watched.is_read:
        update = tail.poll(4096)
        watched.take(IntakeItem("run", str(log), update, tail.status()))
        watched.settle()
        told = watched.snapshot(live=True)
    whole = RunEngine("run", str(log), clock=clock)
    whole.feed(str(log), Tail(log, clock=clock).poll().parsed)
    whole.settle()
    spikes = {check.id: check.what for check in whole.checks()}["loss.spike"]
    assert {check.id: check.what for check in told.checks}["loss.spike"] == spikes


def test_many_runs_are_all_listed_and_all_read(tmp_path: Path) -> None:
    for number in range(60):
        folder = tmp_path / f"run-{number}"
        folder.mkdir()
        rows = "".join(f"step {step} | loss {3 - step / 100:.3f}\n" for step in range(1, 41))
        (folder / "train.log").write_text(rows, encoding="utf-8")
    session = Monitor([], cwd=tmp_path)
    clock, seen = SystemClock(), []
    session.call_when_new(lambda: seen.append(session.latest()))
    session.start()
    try:
        until = clock.monotonic() + 120
        while clock.monotonic() < until and not (seen and len(seen[-1].runs) == 60 and not seen[-1].reading):
            clock.sleep(0.05)
    finally:
        session.stop()
    assert not seen[-1].reading
    assert all(run.verdict is Verdict.PASS and run.last_step == 40 for run in seen[-1].runs)
    assert not any(run.verdict is Verdict.PASS for fleet in seen for run in fleet.runs if run.progress == 0)
