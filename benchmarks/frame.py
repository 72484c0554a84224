"""One frame of charts: 12 charts of series of a million points on 200x60, against a bound run beside it.

    python -m benchmarks.frame

The bound is what numpy needs at least where nothing is kept from frame to frame: least and greatest of each of 12 x 400
columns of a million values. Processor time of this process, medians of rounds that take turns.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from benchmarks.timing import interleaved
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.growable import Growable
from trainmon.monitor.snapshot import SeriesView
from trainmon.tui.arrange import arrange
from trainmon.tui.chart import Chart, draw_chart
from trainmon.tui.curve import curve_of
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.heat import heat_map
from trainmon.tui.levels import LEVELS

POINTS = 1_000_000
CHARTS = 12
LAYERS = 100
WIDTH, HEIGHT = 200, 60
_COLUMNS = 400
ROUNDS = 15


class Series:
    """A series that a run appends to."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.steps = Growable(np.arange(POINTS, dtype=np.float64))
        values = 2 + 8 * np.exp(-np.arange(POINTS) / 50_000) + 0.05 * np.abs(rng.standard_normal(POINTS))
        self.values = Growable(values)

    def append(self) -> None:
        """One more value."""
        self.steps.append(np.array([float(len(self.steps))]))
        self.values.append(np.array([2.0]))

    def view(self) -> SeriesView:
        """As a snapshot has it."""
        steps, values = self.steps.view(), self.values.view()
        n = len(steps)
        attempts = np.broadcast_to(np.int64(0), (n,))
        none = np.empty(0)
        return SeriesView(SignalKey("loss.train"), "nats", steps, values, values, values, attempts, none, n, 2.0)


def cpu_ms(work: object, *arguments: object) -> float:
    """Processor milliseconds that `work` takes."""
    assert callable(work)
    began = process_time()
    work(*arguments)
    return 1000 * (process_time() - began)


def frame(series: list[Series], stretch: tuple[float, float] | None = None) -> None:
    """All charts, as the run screen draws them."""
    places = arrange(len(series), WIDTH, HEIGHT)
    for number, (one, place) in enumerate(zip(series, places, strict=True)):
        chart = Chart("loss", (curve_of(one.view()),), key=number, number=str(number), unit="nats", window=stretch)
        draw_chart(chart, place.width, place.height, UNICODE)


def bound(series: list[Series]) -> None:
    """The least work without levels: minimum and maximum of every column of every chart."""
    for one in series:
        values = one.values.view()
        firsts = np.arange(0, len(values), len(values) // _COLUMNS)
        np.minimum.reduceat(values, firsts)
        np.maximum.reduceat(values, firsts)


def live(series: list[Series]) -> float:
    """A frame after each series has got a value."""
    for one in series:
        one.append()
    return cpu_ms(frame, series)


def main() -> None:
    """Prints the table."""
    series = [Series(seed) for seed in range(CHARTS)]
    layers = tuple(Series(seed).view() for seed in range(8)) * (LAYERS // 8 + 1)
    layers = layers[:LAYERS]
    first = cpu_ms(frame, series)
    heat_map(layers, 180, 50)
    figures = interleaved(
        {
            "bound: numpy min/max of all values": lambda: cpu_ms(bound, series),
            "frame, nothing new": lambda: cpu_ms(frame, series),
            "frame, a value more in each series": lambda: live(series),
            "frame, zoomed to a tenth": lambda: cpu_ms(frame, series, (500_000.0, 600_000.0)),
            f"map of {LAYERS} layers": lambda: cpu_ms(heat_map, layers, 180, 50),
        },
        ROUNDS,
    )
    base = figures["bound: numpy min/max of all values"]
    print(f"{CHARTS} charts of {POINTS:,} points on {WIDTH}x{HEIGHT}, medians of {ROUNDS}")
    print(f"  first frame ever (bins are made)    {first:8.1f} ms CPU  {first / base:6.2f} of the bound")
    for name, value in figures.items():
        print(f"  {name:<36}{value:8.1f} ms CPU  {value / base:6.2f} of the bound")
    print(f"  levels kept: {len(LEVELS)} series")


if __name__ == "__main__":
    main()
