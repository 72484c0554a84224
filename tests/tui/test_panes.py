"""What stands in the small panes: alerts in the order in which one looks at them, long texts that say how long."""

from __future__ import annotations

from dataclasses import replace

from tests.tui.driver import StillClock, running, text_of
from trainmon.monitor.finding import Severity
from trainmon.tui import keys
from trainmon.tui.screens.compare import CompareScreen
from trainmon.tui.widgets.alert_pane import AlertPane, counted, worst_first
from trainmon.tui.widgets.panes import TextList


async def test_alerts_of_a_run_are_told_the_worst_first_then_the_newest() -> None:
    async with running(keys.RUN) as (app, _):
        one = next(each for row in app.rows for each in row.run.episodes if not each.recovered)
        warned = replace(one, id="warned", severity=Severity.WARN, first_step=900.0)
        old, new = (replace(one, id=f"{at}", severity=Severity.FAIL, first_step=float(at)) for at in (100, 200))
        over = replace(old, id="over", recovered=True)
        assert [each.id for each in worst_first((over, warned, old, new))] == ["200", "100", "warned", "over"]
        snoozed = replace(new, snoozed_until=50.0)
        assert counted([over, warned, snoozed], now=10.0) == "1 open, 1 snoozed of 3"
        assert counted([over, warned, snoozed], now=60.0) == "2 open of 3"


async def test_a_snoozed_alert_is_not_counted_as_open() -> None:
    async with running(keys.RUN) as (app, pilot):
        assert isinstance(app.clock, StillClock)
        before = text_of(app)
        assert "snoozed" not in before
        await pilot.press("tab", "z")
        app.poll()
        await pilot.pause()
        assert ", 1 snoozed of 3" in text_of(app)


async def test_a_table_that_is_cut_says_how_much_more_there_is() -> None:
    async with running(keys.COMPARE) as (app, pilot):
        assert isinstance(app.screen, CompareScreen)
        table = app.screen.query_one("#table", TextList)
        app.screen.sized(table, height=4)
        await pilot.pause()
        more = table.count - 3
        assert more > 1
        assert f"{more} more lines: {table.how}" in text_of(app)
        app.screen.set_focus(table)
        await pilot.press("G")
        await pilot.pause()
        assert "more lines" not in text_of(app)


async def test_a_key_acts_on_the_alert_that_was_looked_at_and_then_on_the_next() -> None:
    async with running(keys.RUN) as (app, _):
        one = next(each for row in app.rows for each in row.run.episodes if not each.recovered)
        first, second = (replace(one, id=f"{at}", severity=Severity.WARN, first_step=float(at)) for at in (200, 100))
        pane = AlertPane()
        pane.show((second, first), 0.0)
        assert pane.current == first
        worse = replace(one, id="worse", severity=Severity.FAIL)
        pane.show((second, first, worse), 0.0)
        assert [each.id for each in pane.episodes] == ["worse", "200", "100"]
        assert pane.current == first
        pane.show((second, replace(first, acknowledged=True), worse), 0.0)
        assert pane.current == second
        recovered = replace(second, recovered=True)
        pane.show((recovered, replace(first, acknowledged=True), worse), 0.0)
        assert pane.current == recovered
