"""Charts of one's own choice beside the nine."""

from __future__ import annotations

from tests.tui.driver import make_app
from trainmon.tui.screens.run import RunScreen
from trainmon.tui.screens.signals import SignalsScreen


async def test_a_signal_of_the_nine_is_not_drawn_twice() -> None:
    app = make_app()
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        await pilot.press("enter", "d")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, SignalsScreen)
        names = [views[0].key.signal for views in screen.pane.families]
        screen.pane.move_to(names.index("loss.train"))
        await pilot.press("enter")
        await pilot.pause()
        assert app.added == []
        assert "that is chart 1 already" in [note.message for note in app._notifications]
        other = next(name for name in names if name not in screen.pane.chosen)
        screen.pane.move_to(names.index(other))
        await pilot.press("enter", "escape")
        await pilot.pause()
        assert app.added == [other]
        run = app.screen
        assert isinstance(run, RunScreen)
        assert [chart.number for chart in run.charts.charts if chart.number.startswith("+")] == ["+1"]


async def test_one_that_was_added_gives_way_where_it_is_among_the_nine() -> None:
    app = make_app()
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        app.added = ["loss.train"]  # chosen on a run that draws others
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen)
        assert [chart.number for chart in app.screen.charts.charts if chart.number.startswith("+")] == []
