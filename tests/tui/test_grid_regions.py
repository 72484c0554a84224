"""What is another is drawn, at once, and no more: of a chart with one more value the line of its title."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.geometry import Region

from tests.tui.driver import StillClock, grown, running, source_of
from trainmon.tui import keys
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.span import Span
from trainmon.tui.widgets.chart_grid import ChartGrid
from trainmon.tui.widgets.flat import FlatWidget
from trainmon.tui.widgets.panes import TriagePane


async def test_a_new_value_draws_its_title_and_a_new_curve_its_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(keys.RUN, (160, 48)) as (app, pilot):
        grid = app.screen.query_one(ChartGrid)
        asked: list[Region] = []
        monkeypatch.setattr(grid, "refresh", lambda *regions, **_: asked.extend(regions))
        assert isinstance(app.clock, StillClock)
        source = source_of(app)

        async def one_more(value: float) -> list[int]:
            """The heights of what is drawn anew."""
            asked.clear()
            name = app.screen.run_id.name  # type: ignore[attr-defined]
            runs = tuple(grown(run, value) if run.name == name else run for run in source.snapshot.runs)
            source.snapshot = type(source.snapshot)(runs)
            app.poll()
            await pilot.pause()
            return sorted(region.height for region in asked)

        await one_more(2.345)  # the sample's own series are drawn from other arrays
        assert await one_more(2.456) == [1]
        app.clock.now += 10
        assert max(await one_more(2.567)) > 1


async def test_of_the_triage_only_lines_that_say_something_else_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(keys.RUN, (160, 48)) as (app, _):
        pane = app.screen.query_one(TriagePane)
        asked: list[Region] = []
        monkeypatch.setattr(pane, "refresh", lambda *regions, **_: asked.extend(regions or [pane.region]))
        steps, extra = pane.steps, [*pane.extra]
        pane.show(tuple(replace(step) for step in steps), pane._run, list(extra))
        assert not asked, "new objects that say the same"
        extra[-1] = [Span("another last line")]
        pane.show(steps, pane._run, extra)
        assert [region.height for region in asked] == [1]
        assert "another last line" in pane.render_line(asked[0].y).text


async def test_a_new_snapshot_is_drawn_at_once_and_no_part_is_woken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(keys.RUN, (160, 48)) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, RunScreen)
        source, name = source_of(app), screen.run_id.name
        drawn: list[int] = []
        refresh = screen._compositor_refresh
        monkeypatch.setattr(screen, "_compositor_refresh", lambda: (drawn.append(1), refresh()))
        await pilot.pause()
        drawn.clear()
        runs = tuple(grown(run, 2.345) if run.name == name else run for run in source.snapshot.runs)
        source.snapshot = type(source.snapshot)(runs)
        app.poll()
        assert drawn == [1]
        assert all(part._message_queue.empty() for part in screen.walk_children(FlatWidget))
        await pilot.pause()
        assert drawn == [1]
