"""``trainmon report``: one run as a report of one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.alert_options import config_of_user, wanted_by
from trainmon.commands.common import echo, epilog, fail, give_up, problems_of, say_problems_of
from trainmon.commands.jobs import job_options, job_watch_of
from trainmon.commands.options import cache_option, limit_options, limits_of, output_option, quiet_option
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.snapshot import RunSnapshot


@click.command(
    epilog=epilog(
        "trainmon report run/ -o incident.html  one page, nothing else needed",
        "trainmon report run/  Markdown, for a ticket or a mail",
        status="0 written; 2 wrong usage, or nothing to report",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="RUN", shell_complete=completing.targets)
@click.option("--md", "form", flag_value="md", help="Markdown, with charts of characters (the default).")
@click.option("--html", "form", flag_value="html", help="One HTML page, with charts inline.")
@click.option("--json", "form", flag_value="json", help="One JSON document (schema trainmon.report/1).")
@output_option("Write here; .md, .html, .json.")
@click.option("--log-excerpts", is_flag=True, help="With lines of the log around each episode (may hold data samples).")
@click.option(
    "--shared-state",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    envvar="TRAINMON_SHARED_STATE",
    help="With what the team acknowledged in `watch --shared-state DIR`.",
)
@quiet_option("Do not say what was written.")
@limit_options
@job_options
@cache_option
@ssh_options(short_o=False)
def report(
    targets: tuple[str, ...],
    form: str | None,
    output: Path | None,
    log_excerpts: bool,
    shared_state: Path | None,
    quiet: bool,
    threshold: float | None,
    window: int | None,
    no_slurm: bool,
    pid: int | None,
) -> None:
    """Write an incident or hand-over report of a run: verdicts, stories, charts, notes, settings, what to do.

    RUN is a file, a directory or a glob in quotes that holds one run.
    """
    from trainmon.monitor.check import is_worth_a_report
    from trainmon.monitor.judge import judge
    from trainmon.monitor.logbook import Logbook
    from trainmon.monitor.report import content as reporting
    from trainmon.tails.clock import SystemClock
    from trainmon.tails.own_files import write_output
    from trainmon.tui.seen import with_seen

    if form is None and output is not None:
        try:
            form = reporting.form_of(output)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    clock = SystemClock()
    found = judge(
        list(targets),
        cwd=here(),
        clock=clock,
        limits=limits_of(threshold, window),
        with_scores=False,
        jobs=job_watch_of(no_slurm, pid),
    )
    runs = [run for run in found.runs if is_worth_a_report(run)]
    said = problems_of(found)
    say_problems_of(said)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        fail(f"a report is of one run, and here are {len(runs)}: {names}; name one")
    if not runs:
        give_up(said)
    run, seen_by, unread = _with_team(with_seen(runs[0]), shared_state)
    say_problems_of(unread)
    remarks, problems = Logbook().read(file.path for file in run.files)
    made = reporting.build(
        run,
        made_at=clock.wall(),
        remarks=remarks,
        problems=(*problems, *unread),
        seen_by=seen_by,
        with_log=log_excerpts,
    )
    rendered = reporting.render(made, form or "md")
    if output is None:
        echo(rendered.rstrip("\n"))
        return
    try:
        write_output(output, rendered.encode())
    except OSError as error:
        fail(f"{output}: {error.strerror or error}; choose another place with --output")
    if not quiet:
        click.echo(f"trainmon: wrote {output}", err=True)


def _with_team(
    run: RunSnapshot, folder: Path | None
) -> tuple[RunSnapshot, Mapping[str, tuple[str, float]], Sequence[str]]:
    """What the team acknowledged: of the folder given, or of the user's configuration."""
    from trainmon.monitor.sinks.shared_book import with_shared

    if folder is None:
        wanted = wanted_by(config_of_user(), {})
        folder = wanted.shared_state if wanted is not None else None
    if folder is None:
        return run, {}, ()
    try:
        return with_shared(run, folder)
    except OSError as error:
        fail(f"--shared-state {folder}: {error.strerror or error}")
