"""``trainmon note``: an entry in the log book of a run."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, fail, say_problems


@click.command(epilog="Exit status: 0; 2 wrong usage, no such run, or the note could not be kept.")
@click.argument("target", metavar="RUN", shell_complete=completing.targets)
@click.argument("text", required=False)
@click.option("--step", type=float, help="The step it belongs to; the run's newest when not given.")
def note(target: str, text: str | None, step: float | None) -> None:
    """Write a remark in a run's log book; without TEXT, list them.

    It is kept in your own data folder, drawn as a tick on the run's curves in `watch`, and told in `report`.
    """
    from trainmon.monitor.check import is_worth_a_report
    from trainmon.monitor.judge import judge
    from trainmon.monitor.logbook import Logbook, Remark
    from trainmon.monitor.report import moment
    from trainmon.tails.clock import SystemClock
    from trainmon.tails.text import printable

    if step is not None and not abs(step) < 1e18:
        raise click.UsageError("--step wants a step of the run")
    clock = SystemClock()
    found = judge([target], cwd=Path.cwd(), clock=clock, with_scores=False)
    runs = [run for run in found.runs if is_worth_a_report(run)]
    if len(runs) != 1:
        say_problems(found)
        if len(runs) > 1:
            fail(f"{target}: here are {len(runs)} runs; name one")
        sys.exit(2)
    (run,) = runs
    book = Logbook()
    if text is None:
        remarks, problems = book.read(file.path for file in run.files)
        for problem in problems:
            click.echo(f"trainmon: {printable(problem)}", err=True)
        for each in remarks:
            at = f"step {each.step:.15g}" if each.step is not None else "no step"
            echo(f"{moment(each.time)}  {at}  {printable(each.by, 60)}  {printable(each.text)}")
        return
    remark = Remark(
        path=run.files[0].path,
        time=clock.wall(),
        text=text,
        step=step if step is not None else run.last_step,
        by=_user(),
    )
    try:
        book.add(remark)
    except ValueError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or book.folder}: {error.strerror or error}; the note was not kept")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in the password file, as in a container
        return ""
