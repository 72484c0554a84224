"""``trainmon replay``: a finished log played into `watch` as if live."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, epilog, fail, require_screens, say_problems_of
from trainmon.commands.options import json_option, limit_options, limits_of, quiet_option
from trainmon.commands.terminal_options import terminal_options
from trainmon.commands.watch import show
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.replay import Plan
    from trainmon.monitor.thresholds import Thresholds
    from trainmon.tails.clock import Clock


def _speed(_context: click.Context, _option: click.Parameter, value: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*x?", value.strip().lower())
    speed = float(found[1]) if found else 0.0
    if not 1e-3 <= speed <= 1e9:
        raise click.BadParameter(f"{value!r} is no speed; write 100x")
    return speed


@click.command(
    epilog=epilog(
        "trainmon replay old-run/ --speed 100x --from 12000",
        "trainmon replay old-run/ --out live/ &  for another program to read",
        status="0, or that of `watch`; 2 wrong usage, or there is nothing to replay",
    )
)
@click.argument("target", metavar="RUN", shell_complete=completing.targets)
@click.option("--speed", default="10x", show_default=True, callback=_speed, help="How many times as fast as it was.")
@click.option("--from", "from_step", type=float, metavar="STEP", help="What came before is there from the start.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Write into this directory; no screen.")
@json_option("trainmon.replay/1", where="With --out")
@quiet_option("Do not say what is written.")
@limit_options
@terminal_options
def replay(
    target: str,
    speed: float,
    from_step: float | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    threshold: float | None,
    window: int | None,
) -> None:
    """Play a finished run as if it were live: at the pace of its own time stamps, else one record a second.

    The log is written anew, record after record, in a temporary directory, and watched there. Downtimes are cut short.
    """
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import find
    from trainmon.monitor.replay import ReplayError, document, plan, play
    from trainmon.tails.clock import SystemClock

    if as_json and out is None:
        raise click.UsageError("--json goes with --out")
    if from_step is not None and from_step != from_step:
        raise click.UsageError("--from wants a step")
    found = find([target], here())
    say_problems_of(found.problems)
    if len(found.runs) != 1:
        names = ", ".join(run.name for run in found.runs[:5])
        fail(
            f"{target}: here are {len(found.runs)} runs ({names}); name one"
            if found.runs
            else f"{target}: no run to replay"
        )
    if out is None:
        require_screens("`trainmon replay RUN --out DIR` only writes the log")
    own = None if out is not None else Path(tempfile.mkdtemp(prefix="trainmon-replay-"))
    folder = out or Path()
    if own is not None:  # the screens call a run by its folder
        folder = own / (re.sub(r"[^\w.-]", "_", found.runs[0].name)[-80:].strip(".") or "run")
        folder.mkdir()
    clock = SystemClock()
    stop = threading.Event()
    problems: list[str] = []
    try:
        made = plan(found.runs[0], folder, clock, from_step=from_step)
        if any(part.target.exists() for part in made.parts):
            fail(f"{folder}: holds files of that name already; name an empty directory")
        if out is not None:
            if not quiet:
                click.echo(f"trainmon: writing below {out} for {made.lasts_s / speed:.0f} s; Ctrl-C ends it", err=True)
            play(made, speed, clock, stop, problems.append)
        else:
            _watched(made, speed, clock, stop, problems, folder, limits_of(threshold, window))
    except ReplayError as error:
        fail(str(error))
    finally:
        stop.set()
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    if problems:
        fail(problems[0])
    if as_json:
        echo(dumps(document(found.runs[0].name, made, speed)))


def _watched(
    made: Plan, speed: float, clock: Clock, stop: threading.Event, problems: list[str], folder: Path, limits: Thresholds
) -> None:
    from trainmon.monitor.replay import play

    writer = threading.Thread(
        target=play, args=(made, speed, clock, stop, problems.append), name="trainmon-replay", daemon=True
    )
    writer.start()
    try:
        show([str(folder)], limits, awaited="the replay is starting; its first lines come within seconds")
    finally:
        stop.set()
        writer.join(timeout=5.0)
