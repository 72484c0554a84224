"""What the list says while histories are read, and while a demo's first lines are awaited."""

from __future__ import annotations

from dataclasses import replace

from tests.tui import sample
from tests.tui.driver import make_app, text_of
from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tui.widgets.panes import LogPane


def _unread(run: RunSnapshot, progress: float) -> RunSnapshot:
    file = FileStatus("a.log", "", int(1000 * progress > 0) * 1000, int(1000 * progress), 0, 0, 0)
    return replace(run, progress=progress, verdict=Verdict.NO_DATA, verdict_reason="", files=(file,), episodes=())


async def test_a_run_whose_history_is_read_says_so_and_how_far() -> None:
    runs = tuple(_unread(run, 0.25) for run in sample.fleet().runs)
    async with make_app(FleetSnapshot(runs, reading=True)).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = text_of(pilot.app)
        assert "reading 25%" in text
        assert f"0 of {len(runs)} read" in text
        assert "PASS" not in text
        assert "no run in trouble" not in text


async def test_of_many_runs_not_looked_at_yet_those_that_are_read_are_counted() -> None:
    first, *others = sample.fleet().runs
    runs = (replace(first, progress=1.0), *(_unread(run, 0.0) for run in others))
    async with make_app(FleetSnapshot(runs, reading=True)).run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = text_of(pilot.app)
        assert "not read" in text
        assert f"1 of {len(runs)} runs" in text


async def test_the_title_of_the_log_says_only_what_a_reader_of_it_notices() -> None:
    run = sample.fleet().runs[0]
    line = LogLine("a.log", 1, "step 1 loss 2.5")
    titles = []
    for watched_by, filesystem in (("inotify", "ext4"), ("poll", "nfs4")):
        file = FileStatus("a.log", "generic", 9, 9, 1, 1, 0, watched_by, filesystem=filesystem)
        async with make_app(FleetSnapshot((replace(run, files=(file,), log_tail=(line,)),))).run_test() as pilot:
            await pilot.pause()
            await pilot.press("l")
            await pilot.pause()
            titles.append(text_of(pilot.app).partition("newest lines")[2].partition("\n")[0])
    assert "inotify" not in titles[0]
    assert "looked for every few seconds, on nfs4" in titles[1]


async def test_a_demo_that_starts_warns_of_nothing() -> None:
    app = make_app(FleetSnapshot((), problems=("/tmp/demo: no training logs",), status="looked below /tmp/demo"))
    app.awaited = "the simulated runs are starting"
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = text_of(app)
        assert "the simulated runs are starting" in text
        assert "no training logs" not in text
        app.clock.sleep(61)
        app._tick()
        await pilot.pause()
        assert "no training logs" in text_of(app)


async def test_without_experts_none_is_counted() -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in ("j", "j", "X"):  # a dense model
            await pilot.press(key)
            await pilot.pause()
        text = text_of(pilot.app)
        assert "no experts in this run" in text
        assert "every expert has its share" not in text
        assert "0 dead" not in text


def test_a_line_that_is_only_known_from_the_end_is_said_to_be_so() -> None:
    pane = LogPane()
    pane.lines_ = [LogLine("a.log", number, "loss 2.5", "text", None) for number in (-2, -1)]
    assert pane.head()[0][1].text.strip() == "line 2 from the end"
    pane.lines_ = [LogLine("a.log", 7, "loss 2.5", "text", None)]
    assert pane.head()[0][1].text.strip() == "line 7"
