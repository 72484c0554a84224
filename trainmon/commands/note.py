"""``trainmon note``: an entry in the log book of a run."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, epilog, fail, give_up, problems_of, say_problems_of
from trainmon.commands.options import json_option, quiet_option
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.logbook import Remark
    from trainmon.monitor.snapshot import RunSnapshot


@click.command(
    epilog=epilog(
        'trainmon note run/ "halved the learning rate"  at the newest step',
        'trainmon note run/ "new data from here" --step 12000',
        "trainmon note run/  the notes of the run",
        status="0; 2 wrong usage, no such run, or the note could not be kept",
    )
)
@click.argument("target", metavar="RUN", shell_complete=completing.targets)
@click.argument("text", required=False)
@click.option("--step", type=float, help="The step it belongs to; the run's newest when not given.")
@json_option("trainmon.notes/1")
@quiet_option("Do not say what was kept; of a list, only the words.")
@ssh_options()
def note(target: str, text: str | None, step: float | None, as_json: bool, quiet: bool) -> None:
    """Write a remark in a run's log book; without TEXT, list them.

    It is kept in your own data folder, drawn as a tick on the run's curves in `watch`, and told in `report`.
    """
    from trainmon.monitor.document import dumps
    from trainmon.monitor.logbook import document
    from trainmon.tails.text import printable

    if step is not None and not abs(step) < 1e18:
        raise click.UsageError("--step wants a step of the run")
    run = _one_run(target)
    remarks, problems = ([_kept(run, text, step)], ()) if text is not None else _all(run)
    say_problems_of(problems)
    if as_json:
        echo(dumps(document(run.name, remarks, problems)))
    elif text is None:
        for each in remarks:
            echo(printable(each.text, len(each.text)) if quiet else _line(each))
    elif not quiet:
        at = f" at step {remarks[0].step:.15g}" if remarks[0].step is not None else ""
        click.echo(f"trainmon: kept in the log book of {printable(run.name, 80)}{at}", err=True)


def _one_run(target: str) -> RunSnapshot:
    from trainmon.monitor.check import is_worth_a_report
    from trainmon.monitor.judge import judge

    found = judge([target], cwd=here(), with_scores=False)
    runs = [run for run in found.runs if is_worth_a_report(run)]
    if len(runs) == 1:
        return runs[0]
    said = problems_of(found)
    say_problems_of(said)
    return fail(f"{target}: here are {len(runs)} runs; name one") if runs else give_up(said)


def _all(run: RunSnapshot) -> tuple[Sequence[Remark], Sequence[str]]:
    from trainmon.monitor.logbook import Logbook

    return Logbook().read(file.path for file in run.files)


def _kept(run: RunSnapshot, text: str, step: float | None) -> Remark:
    """The remark, written to the book. One line and status 2 where it cannot be kept."""
    from trainmon.monitor.logbook import Logbook, Remark
    from trainmon.tails.clock import SystemClock

    book = Logbook()
    remark = Remark(
        path=run.files[0].path,
        time=SystemClock().wall(),
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
    return remark


def _line(remark: Remark) -> str:
    from trainmon.monitor.report.content import moment
    from trainmon.tails.text import printable

    at = f"step {remark.step:.15g}" if remark.step is not None else "no step"
    return f"{moment(remark.time)}  {at}  {printable(remark.by, 60)}  {printable(remark.text, len(remark.text))}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user in the password file, as in a container
        return ""
