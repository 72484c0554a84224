"""What comes while one looks: new values, ages, runs that go, histories that are being read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.tui import sample
from tests.tui.driver import StillClock, change_run, grown, running, source_of, text_of
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tails.give_way import GiveWay
from trainmon.tui import app as app_module
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look
from trainmon.tui.screens.evidence import EvidenceScreen
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.widgets.chart_grid import ChartGrid

SIZES = [(60, 15), (80, 24), (100, 30), (160, 48), (300, 100)]


async def test_a_new_value_reaches_the_screen() -> None:
    async with running() as (app, pilot):
        run = grown(sample.healthy(), 1.2345)
        source = source_of(app)
        source.snapshot = replace(source.snapshot, runs=(run, *source.snapshot.runs[1:]))
        app.poll()
        await pilot.pause()
        line = next(line for line in text_of(app).splitlines() if "llama-1b-base" in line)
        assert "1.234" in line
        assert "4001/10k" in line


async def test_only_what_changed_is_drawn() -> None:
    async with running(keys.RUN) as (app, pilot):
        grid = app.screen.query_one(ChartGrid)
        before = {place: block.strips for place, block in grid._blocks.items()}
        change_run(app, "moe-16x1b", revision=5)
        app.poll()
        await pilot.pause()
        assert all(grid._blocks[place].strips is before[place] for place in before)
        run = next(run for run in source_of(app).snapshot.runs if run.name == "olmo-7b-lr-hot")
        view = run.series[SignalKey("loss.train")]
        longer = replace(view, bad_steps=np.append(view.bad_steps, 4001.0), count=view.count + 1)
        change_run(app, run.name, series={**run.series, longer.key: longer}, revision=9)
        app.poll()
        await pilot.pause()
        assert [place for place in before if grid._blocks[place].strips is not before[place]] == [
            place for place, chart in grid._places if chart.number == "1"
        ]


async def test_nothing_is_drawn_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(keys.RUN) as (app, pilot):
        drawn: list[object] = []
        update = app._display

        def count(*args: Any) -> None:
            drawn.append(args)
            update(*args)

        monkeypatch.setattr(app, "_display", count)
        for _ in range(20):
            app.poll()
            app._tick()
        await pilot.pause()
        assert drawn == []


async def test_ages_grow_while_nothing_comes() -> None:
    async with running() as (app, pilot):
        assert isinstance(app.clock, StillClock)
        app.clock.now += 30
        app._tick()
        await pilot.pause()
        line = next(line for line in text_of(app).splitlines() if "llama-1b-base" in line)
        assert line.rstrip().endswith("40s")


async def test_a_list_that_stands_still_is_gone_through_when_an_age_changes_and_not_before() -> None:
    async with running() as (app, pilot):
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        clock = app.clock
        assert isinstance(clock, StillClock)
        drawn: list[float] = []
        draw = screen.draw

        def counted(fleet: FleetSnapshot) -> None:
            drawn.append(clock.now)
            draw(fleet)

        screen.draw = counted  # type: ignore[method-assign]
        clock.now = 2.0
        app._tick()
        before = text_of(app)
        clock.now = 3600.0
        app._tick()
        await pilot.pause()
        assert drawn[-1] == 3600.0
        assert text_of(app) != before
        drawn.clear()
        clock.now = 3602.0
        app._tick()
        assert not drawn, "ages in hours"
        await pilot.press("s")
        assert drawn, "a key is answered whatever the ages are"


async def test_the_cursor_stays_on_its_run_when_the_order_changes() -> None:
    async with running() as (app, pilot):
        await pilot.press("j", "j", "j")
        assert isinstance(app.screen, FleetScreen)
        assert app.screen.table.current is not None
        name = app.screen.table.current.run.name
        await pilot.press("s")
        await pilot.pause()
        assert app.screen.table.current is not None
        assert app.screen.table.current.run.name == name


async def test_a_run_that_goes_away() -> None:
    async with running(keys.RUN) as (app, pilot):
        source_of(app).snapshot = FleetSnapshot(sample.fleet().runs[:1])
        app.poll()
        await pilot.pause()
        assert "no longer there" in text_of(app)
        await pilot.press("a", "l", "escape", "enter", "escape")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)


async def test_an_episode_that_is_withdrawn_while_one_looks_at_it() -> None:
    async with running(keys.RUN) as (app, pilot):
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert isinstance(app.screen, EvidenceScreen)
        change_run(app, "olmo-7b-lr-hot", episodes=(), triage=sample.triage({}), verdict=Verdict.PASS)
        app.poll()
        await pilot.pause()
        assert "withdrawn" in text_of(app)


async def test_acknowledged_episodes_go_down_the_list() -> None:
    async with running(keys.RUN) as (app, pilot):
        await pilot.press("tab", "a")
        await pilot.pause()
        text = text_of(app)
        assert "2 open of 3" in text
        assert "seen" in text


async def test_loading_shows_progress() -> None:
    run = replace(sample.healthy(), progress=0.43)
    async with running(fleet=FleetSnapshot((run,), reading=True)) as (app, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert "reading history" in text_of(app)
        assert "43%" in text_of(app)


class _Written(sample.SampleSource):
    """A source that knows of bytes which were not read yet."""

    def call_when_new(self, call: object) -> None:
        del call

    def attend(self, runs: frozenset[str]) -> None:
        del runs

    def written_s(self, path: str) -> float | None:
        return 38.0 if "llama-1b-base" in path else None


async def test_the_age_is_that_of_the_newest_byte_also_before_it_is_read() -> None:
    clock = StillClock()
    runs = tuple(
        replace(run, files=tuple(replace(file, path=f"{run.name}/{file.path}") for file in run.files))
        for run in sample.fleet().runs
    )
    app = TrainmonApp(_Written(FleetSnapshot(runs)), clock=clock, look=Look(UNICODE))
    async with app.run_test(size=(100, 30)) as pilot:
        clock.now = 40.0
        app._show()
        await pilot.pause()
        ages = {row.run.name: app.age_s(row, clock.monotonic()) for row in app.rows}
        assert ages["llama-1b-base"] == 2.0
        assert ages["olmo-7b-lr-hot"] >= 40.0
        line = next(line for line in text_of(app).splitlines() if "llama-1b-base" in line)
        assert line.rstrip().endswith(" 2s")


async def test_news_wait_until_a_key_is_answered_but_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StillClock()
    way = GiveWay(clock)
    monkeypatch.setattr(app_module, "KEYS", way)
    source = _Written(sample.fleet())
    app = TrainmonApp(source, clock=clock, look=Look(UNICODE))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        shown = app.fleet
        clock.now += 0.2
        way.ask()
        source.snapshot = FleetSnapshot(shown.runs[:2])
        app._poll_soon()
        await pilot.pause()
        assert app.fleet is shown
        way.done()
        await pilot.pause(0.2)
        assert app.fleet is source.snapshot
        clock.now += 0.6
        way.ask()
        source.snapshot = shown
        app._poll_soon()
        assert app.fleet is shown
