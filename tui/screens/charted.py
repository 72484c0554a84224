"""What the screens with charts share: zoom, cursor, smoothing, and what the x axis counts."""

from __future__ import annotations

from dataclasses import replace

from trainmon.tui.axis import AXES, available, next_axis, why_not
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.screens.of_run import RunBound
from trainmon.tui.source import ReadingSource
from trainmon.tui.widgets.chart_grid import ChartGrid

_BRIEFLY_S = 2.0  # what the axis says as well


class Charted(MonitorScreen):
    """A screen with one `ChartGrid`. What was chosen for it holds on the other screens too, but for the stretch."""

    @property
    def grid(self) -> ChartGrid:
        """The charts."""
        return self.query_one(ChartGrid)

    def look_changed(self) -> None:
        """Another stretch of the x axis is looked at; subclasses draw what goes along with the charts."""

    def action_zoom(self, by: int) -> None:
        """In (1) or out (-1)."""
        self.grid.zoom(by)
        self.look_changed()

    def action_sideways(self, by: int) -> None:
        """Pans, where one has zoomed in."""
        if self.grid.view.stretch is None:
            self.notify("everything is shown; + zooms in")
        self.grid.pan(by)
        self.look_changed()

    def action_read(self, by: int) -> None:
        """Moves the cursor of the charts."""
        self.grid.read(by)

    def action_fit(self) -> None:
        """Everything again."""
        self.grid.look(replace(self.grid.view, stretch=None, follow=False, cursor=None))
        self.look_changed()

    def action_follow(self) -> None:
        """The newest part."""
        self.grid.follow()
        self.look_changed()

    def action_smooth(self) -> None:
        """Over the raw curve, which stays."""
        self.grid.look(replace(self.grid.view, smooth=not self.grid.view.smooth))
        self._keep()

    def action_log_y(self) -> None:
        """Logarithmic, linear, as the values ask."""
        after = {None: True, True: False, False: None}[self.grid.view.log_y]
        self.grid.look(replace(self.grid.view, log_y=after))
        self.notify(
            {None: "y axis as the values ask", True: "y axis logarithmic", False: "y axis linear"}[after],
            timeout=_BRIEFLY_S,
        )
        self._keep()

    def action_outliers(self) -> None:
        """Cut, all shown, as the chart decides."""
        after = {None: True, True: False, False: None}[self.grid.view.clip]
        self.grid.look(replace(self.grid.view, clip=after))
        said = {
            None: "y axis without the first descent",
            True: "outliers cut, marked at the edge",
            False: "y axis reaches all values",
        }
        self.notify(said[after], timeout=_BRIEFLY_S)
        self._keep()

    def copied(self) -> str:
        """The chart at the cursor: what stands over it."""
        chart = self.grid.current
        if chart is None:
            return ""
        shown = self.grid.seen(chart)
        words = (shown.title, shown.value, shown.change, shown.beside)
        return " ".join(word for word in words if word)

    def _keep(self) -> None:
        self.monitor.view = replace(self.grid.view, stretch=None, follow=False, cursor=None)
        self.monitor.remember()


class RunCharted(Charted, RunBound):
    """Of one run."""

    def look_changed(self) -> None:
        """What was thinned of the stretch is read again from the log, where the axis counts steps."""
        stretch, run = self.grid.view.stretch, self.run_now()
        source = self.monitor.source
        if stretch is not None and run is not None and self.axis() == "step" and isinstance(source, ReadingSource):
            source.look_closely(run.name, *stretch)

    def action_axis(self) -> None:
        """The next axis that the log can fill."""
        run = self.run_now()
        if run is None:
            return
        axis = next_axis(run, self.axis())
        if missing := [why for one in AXES if (why := why_not(run, one))]:
            self.notify(f"no axis by {'; '.join(missing)}", markup=False)
        self.monitor.axis = axis
        self.monitor.remember()
        self.grid.look(replace(self.grid.view, stretch=None, follow=False, cursor=None))
        self.show(self.monitor.fleet)

    def axis(self) -> str:
        """The axis wished for, where this run can be put on it."""
        run = self.run_now()
        return self.monitor.axis if run is not None and available(run, self.monitor.axis) else "step"
