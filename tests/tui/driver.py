"""The app under Textual's Pilot, with the sample fleet and a clock that stands still."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
from textual.pilot import Pilot

from tests.tui import sample
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE, Glyphs
from trainmon.tui.look import Look

# The way to each screen from the list of runs; the run is the second, which diverged.
WAYS: dict[str, list[str]] = {
    keys.FLEET: [],
    keys.RUN: ["j", "enter"],
    keys.TRIAGE: ["j", "t"],
    keys.EVIDENCE: ["j", "t", "enter"],
    keys.COMPARE: ["space", "j", "space", "c"],
    keys.LAYERS: ["j", "j", "j", "L"],
    keys.EXPERTS: ["j", "j", "j", "X"],
    keys.LOG: ["j", "l"],
    keys.ALERTS: ["j", "A"],
    keys.INVENTORY: ["j", "i"],
    keys.SIGNALS: ["j", "enter", "d"],
    keys.HELP: ["question_mark"],
}


class StillClock:
    """Time only passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def wall(self) -> float:
        return sample.NOW + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def make_app(fleet: FleetSnapshot | None = None, glyphs: Glyphs = UNICODE, dark: bool = True) -> TrainmonApp:
    source = sample.SampleSource(sample.fleet() if fleet is None else fleet)
    return TrainmonApp(source, clock=StillClock(), look=Look(glyphs, dark))


@asynccontextmanager
async def running(
    screen: str = keys.FLEET,
    size: tuple[int, int] = (80, 24),
    fleet: FleetSnapshot | None = None,
    glyphs: Glyphs = UNICODE,
) -> AsyncIterator[tuple[TrainmonApp, Pilot[None]]]:
    app = make_app(fleet, glyphs)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in WAYS[screen]:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause()
        yield app, pilot


def source_of(app: TrainmonApp) -> sample.SampleSource:
    assert isinstance(app.source, sample.SampleSource)
    return app.source


def text_of(app: TrainmonApp) -> str:
    """The characters on the screen, a line each."""
    width, height = app.size
    update = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip) for strip in update]
    assert len(lines) == height
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)


def change_run(app: TrainmonApp, name: str, **changes: object) -> None:
    """Publishes a new snapshot in which the run `name` differs."""
    source = source_of(app)
    runs = tuple(replace(run, **changes) if run.name == name else run for run in source.snapshot.runs)  # type: ignore[arg-type]
    source.snapshot = replace(source.snapshot, runs=runs)


def grown(run: RunSnapshot, value: float) -> RunSnapshot:
    """`run` with one more value of the loss."""
    view = run.series[SignalKey("loss.train")]
    steps, values = np.append(view.steps, view.steps[-1] + 1), np.append(view.values, value)
    longer = sample.view("loss.train", steps, values)
    return replace(sample.with_series(run, longer), revision=run.revision + 1, last_step=float(steps[-1]))
