"""Of a chart whose newest value alone is another, the line of its title is drawn, and no more."""

from __future__ import annotations

import pytest
from textual.geometry import Region

from tests.tui.driver import StillClock, grown, running, source_of
from trainmon.tui import keys
from trainmon.tui.widgets.chart_grid import ChartGrid


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

        place = grid._places[0][0]
        assert place.height > 1
        await one_more(2.345)  # the sample's own series are drawn from other arrays
        assert await one_more(2.456) == [1]
        app.clock.now += 10
        assert place.height in await one_more(2.567)
