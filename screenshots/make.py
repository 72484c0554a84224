"""Writes pictures of the real app, SVG and PNG: every screen at 80x24 and 160x48.

    python screenshots/make.py [--on TARGET] [--out DIR] [--only NAME] [--svg-only]

The runs are those of ``trainmon demo`` with a fixed seed, or those of TARGET, read by the real session; keys are
pressed as a person would. Pictures of a TARGET are called ``on-...``, and like all PNGs but the README's stay here.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from picture import shortened, write_png
from textual.pilot import Pilot

from trainmon.monitor.judge import find
from trainmon.monitor.session import Monitor
from trainmon.monitor.simulate import simulation as simulate
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look

SIZES = ((80, 24), (160, 48))
_PATIENCE_S = 300.0  # with other work on the machine


@dataclass(frozen=True)
class Shot:
    """One picture: the keys that lead to it from the list of runs; "*" waits for what the last key asked for."""

    name: str
    keys: tuple[str, ...]
    dark: bool = True

    @property
    def is_anywhere(self) -> bool:
        """Whether its keys name no run of the demo."""
        return "slash" not in self.keys or self.name == "filter"


def _filter(words: str) -> tuple[str, ...]:
    names = {" ": "space", ":": "colon", ">": "greater_than_sign", "-": "minus"}
    return ("slash", *(names.get(character, character) for character in words), "enter")


SHOTS = (
    Shot("fleet", ()),
    Shot("fleet-light", (), dark=False),
    Shot("filter", _filter("verdict:fail or step>4k")[:-1]),
    Shot("run", ("enter",)),
    Shot("run-moe", (*_filter("moe"), "enter")),
    Shot("zoom", (*_filter("350m"), "enter", "1", "x", "m", *("plus",) * 2, *("comma",) * 12)),
    Shot("triage", ("t",)),
    Shot("evidence", ("enter", "tab", "enter", "*")),
    Shot("log", ("enter", "tab", "enter", "*", "l", "*")),
    Shot("compare", ("space", "j", "space", "j", "space", "c")),
    Shot("layers", (*_filter("moe"), "L")),
    Shot("layers-values", (*_filter("moe"), "L", "v", "w")),
    Shot("experts", (*_filter("moe"), "X")),
    Shot("alerts", ("A",)),
    Shot("inventory", ("i",)),
    Shot("signals", (*_filter("350m"), "enter", "d")),
    Shot("help", ("question_mark",)),
)


async def wait_for(pilot: Pilot[None], holds: Callable[[], bool], what: Callable[[], str]) -> None:
    """Waits until `holds`. Raises TimeoutError, with how far it came."""
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what()} after {_PATIENCE_S:.0f} s")
        await pilot.pause(0.1)


def how_far(fleet: FleetSnapshot, runs: int) -> str:
    """What of `runs` is read."""
    return f"{sum(run.progress >= 1 for run in fleet.runs)} of {runs} runs are read"


def settled(fleet: FleetSnapshot, runs: int) -> bool:
    """All `runs` are found and read."""
    return len(fleet.runs) == runs and not fleet.reading and all(run.progress >= 1 for run in fleet.runs)


async def take(shot: Shot, size: tuple[int, int], session: Monitor, runs: int) -> str:
    """The SVG of one shot."""
    app = TrainmonApp(session, look=Look(UNICODE, shot.dark))
    async with app.run_test(size=size) as pilot:
        await wait_for(pilot, lambda: settled(app.fleet, runs), lambda: how_far(app.fleet, runs))
        await pilot.pause(0.5)
        for key in shot.keys:
            if key == "*":
                await pilot.pause(1.5)
            else:
                await pilot.press(key)
                await pilot.pause(0.1)
        await pilot.pause(0.6)
        return shortened(app.export_screenshot(title="trainmon"))


class Watching(Monitor):
    """A session that several apps look at one after the other; each tells it to stop, the last word is `end`."""

    def stop(self) -> None:
        """Not yet."""

    def end(self) -> None:
        """Now."""
        super().stop()


async def make(out: Path, only: str | None = None, png: bool = True, target: str | None = None) -> list[Path]:
    """Writes all pictures, or those of the shot `only`, into `out`; returns their paths. `target`: not of the demo."""
    out.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory(prefix="trainmon-pictures-") as folder:
        if target is None:
            simulate.write_finished(Path(folder) / "runs", seed=0)
        session = Watching([target or "runs"], cwd=Path.cwd() if target else Path(folder))
        runs = len(find([target or "runs"], Path.cwd() if target else Path(folder)).runs)
        session.start()
        try:
            for shot in SHOTS:
                if only not in (None, shot.name) or (target is not None and not shot.is_anywhere):
                    continue
                for width, height in SIZES:
                    svg = await take(shot, (width, height), session, runs)
                    path = out / f"{'on-' * (target is not None)}{shot.name}-{width}x{height}.svg"
                    path.write_text(svg, encoding="utf-8")
                    written.append(path)
                    if png:
                        write_png(svg, path.with_suffix(".png"))
                        written.append(path.with_suffix(".png"))
        finally:
            session.end()
    return written


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--on", metavar="TARGET", help="a log, a directory, a glob in quotes: not the demo's runs")
    parser.add_argument("--only", choices=[shot.name for shot in SHOTS])
    parser.add_argument("--svg-only", action="store_true", help="no PNG (they need rsvg-convert or cairosvg)")
    options = parser.parse_args()
    for path in asyncio.run(make(options.out, options.only, png=not options.svg_only, target=options.on)):
        print(path)


if __name__ == "__main__":
    main()
