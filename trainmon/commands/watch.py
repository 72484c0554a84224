"""``trainmon watch``: the screens, or one JSON line an event."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import EXIT, fail, history_option, keep_history, limit_options, limits_of, stop_printing
from trainmon.commands.jobs import job_options, job_watch_of
from trainmon.commands.reach import ssh_options

if TYPE_CHECKING:
    from trainmon.monitor.slurm.everywhere import Jobs
    from trainmon.monitor.snapshot import RunSnapshot
    from trainmon.monitor.thresholds import Thresholds


@click.command(epilog=EXIT)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=completing.targets)
@click.option("--headless", is_flag=True, help="No screen: one JSON object a line, exit status as `check`.")
@click.option("--records", is_flag=True, help="With --headless: a `record` event for each training record.")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With --headless: end after so long without news.",
)
@click.option(
    "--prometheus",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.prom",
    help="With --headless: keep a node-exporter text file up to date.",
)
@limit_options
@job_options
@history_option
@ssh_options()
def watch(
    targets: tuple[str, ...],
    headless: bool,
    records: bool,
    until_idle: float | None,
    prometheus: Path | None,
    threshold: float | None,
    window: int | None,
    no_slurm: bool,
    pid: int | None,
) -> None:
    """Watch runs live. Press ? for the keys, q to quit.

    TARGET is a file, a directory, a glob in quotes, host:PATH, slurm:JOBID, slurm:me, or - for standard input. Without
    one: all runs below here.
    """
    limits = limits_of(threshold, window)
    jobs = job_watch_of(no_slurm, pid)
    if headless:
        from trainmon.monitor.headless import run_headless

        try:
            status = run_headless(
                list(targets),
                cwd=Path.cwd(),
                limits=limits,
                records=records,
                until_idle_s=until_idle,
                prometheus=prometheus,
                jobs=jobs,
                on_end=keep_history,
            )
        except BrokenPipeError:
            stop_printing()
            status = 0
        sys.exit(status)
    if records or until_idle is not None or prometheus is not None:
        raise click.UsageError("--records, --until-idle and --prometheus go with --headless")
    if not sys.stdout.isatty():
        fail("standard output is no terminal; use `trainmon watch --headless` there, or `trainmon check`")
    show(list(targets), limits, jobs, on_end=keep_history)


def show(
    targets: list[str],
    limits: Thresholds,
    jobs: Jobs | None = None,
    on_end: Callable[[Sequence[RunSnapshot]], None] | None = None,
) -> None:
    """Opens the screens on `targets`, until they are left. `jobs`: who says what the runs' jobs do; `on_end`: is given
    the runs as they were at last."""
    from trainmon.monitor.session import Monitor
    from trainmon.tails.stdin_source import take_stdin

    stdin_fd = 0
    if "-" in targets:
        try:
            stdin_fd = take_stdin()
        except OSError as error:
            fail(f"-: standard input is closed ({error.strerror}); pipe a log into it")
    session = Monitor(targets, cwd=Path.cwd(), limits=limits, stdin_fd=stdin_fd, jobs=jobs)
    from trainmon.tui.app import TrainmonApp

    app = TrainmonApp(session)
    session.start()
    try:
        app.run()
    finally:
        session.stop()
        if on_end is not None:
            on_end(session.latest().runs)
    if app.return_code:
        sys.exit(app.return_code if app.return_code > 128 else 2)
