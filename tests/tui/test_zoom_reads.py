"""Zooming in asks the source for what was thinned there."""

from __future__ import annotations

from tests.tui.driver import running
from tests.tui.sample import SampleSource
from trainmon.tui import keys
from trainmon.tui.source import ReadingSource
from trainmon.tui.widgets.chart_grid import ChartGrid


class _Reading(SampleSource):
    def look_closely(self, run: str, first: float, last: float) -> None:
        self.asked.append(("look_closely", run, first, last))


async def test_a_stretch_is_asked_for() -> None:
    async with running(keys.RUN) as (app, pilot):
        assert isinstance(app.source, SampleSource)
        assert not isinstance(app.source, ReadingSource)
        await pilot.press("plus")  # a source that has nothing to read again is not asked
        source = _Reading(app.source.snapshot)
        app.source = source
        await pilot.press("plus", "plus")
        await pilot.pause()
        stretch = app.screen.query_one(ChartGrid).view.stretch
        assert stretch is not None
        asked = [told for told in source.asked if told[0] == "look_closely"]
        assert [told[2:] for told in asked][-1] == stretch
        await pilot.press("0")
        await pilot.pause()
        assert len([told for told in source.asked if told[0] == "look_closely"]) == len(asked)
