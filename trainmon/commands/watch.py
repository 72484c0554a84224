"""``trainmon watch``: the screens, or one JSON line an event."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.alert_options import alert_options, config_of_user, wanted_by
from trainmon.commands.common import (
    epilog,
    fail,
    keep_history,
    look_for_cycles,
    require_screens,
    say_problems_of,
    stop_printing,
)
from trainmon.commands.jobs import job_options, job_watch_of, require_process
from trainmon.commands.options import history_option, limit_options, limits_of, quiet_option
from trainmon.commands.reach import ssh_options
from trainmon.commands.terminal_options import set_pace, terminal_options
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.late_session import LateMonitor
    from trainmon.monitor.session import Monitor
    from trainmon.monitor.sinks.settings import AlertSettings
    from trainmon.monitor.slurm.everywhere import Jobs
    from trainmon.monitor.snapshot import RunSnapshot
    from trainmon.monitor.thresholds import Thresholds
    from trainmon.monitor.user_config import UserConfig
    from trainmon.tui.app import TrainmonApp

# What waits when the screens are left (a mail, a command that runs) holds the shell up at most so long.
_PATIENCE_S = 5.0


@click.command(
    epilog=epilog(
        "trainmon watch  all runs below here",
        "trainmon watch 'runs/*/train.log' node7:/scratch/run",
        "trainmon watch slurm:me --notify URL --bell",
        "trainmon watch run/ --headless --prometheus /var/lib/node/run.prom",
    )
)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=completing.targets)
@click.option(
    "--headless", "--json", "headless", is_flag=True, help="No screen: one JSON object a line, exit status as `check`."
)
@click.option("--records", is_flag=True, help="With --headless: a `record` event for each training record.")
@quiet_option("With --headless: only faults (`episode`), `problem`, `mark` and `end`.")
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
@alert_options
@terminal_options
@limit_options
@job_options
@history_option
@ssh_options(history="256M")  # the present of a huge log first: a link is not flooded with its past
def watch(
    targets: tuple[str, ...],
    headless: bool,
    records: bool,
    quiet: bool,
    until_idle: float | None,
    prometheus: Path | None,
    threshold: float | None,
    window: int | None,
    no_slurm: bool,
    pid: int | None,
    alert_flags: Mapping[str, object],
) -> None:
    """Watch runs live. Press ? for the keys, q to quit.

    TARGET is a file, a directory, a glob in quotes, host:PATH, slurm:JOBID, slurm:me, or - for standard input. Without
    one: all runs below here.
    """
    limits = limits_of(threshold, window)
    config = config_of_user()
    alerts = wanted_by(config, alert_flags)
    require_process(pid)
    jobs = partial(job_watch_of, no_slurm, pid)
    if headless:
        look_for_cycles()
        from trainmon.monitor.headless import run_headless
        from trainmon.monitor.sinks.base import SinkError

        last: list[RunSnapshot] = []

        def ended(runs: Sequence[RunSnapshot]) -> None:
            keep_history(runs)
            last.extend(runs)

        try:
            status = run_headless(
                list(targets),
                cwd=here(),
                limits=limits,
                records=records,
                quiet=quiet,
                until_idle_s=until_idle,
                prometheus=prometheus,
                jobs=jobs(),
                on_end=ended,
                alerts=alerts,
            )
        except SinkError as error:
            fail(str(error))
        except BrokenPipeError:
            stop_printing()
            status = 0
        if status == 2:
            _say_why(last)
        sys.exit(status)
    if records or until_idle is not None or prometheus is not None:
        raise click.UsageError("--records, --until-idle and --prometheus go with --headless")
    require_screens("use `trainmon watch --headless` there, or `trainmon check`")
    show(list(targets), limits, jobs, on_end=keep_history, config=config, alerts=alerts)


def _say_why(runs: Sequence[RunSnapshot]) -> None:
    """On stderr: why nothing could be judged. The events say it too."""
    from trainmon.monitor.check import is_worth_a_report, why_nothing

    lines = [why_nothing(run) for run in runs if not is_worth_a_report(run)]
    say_problems_of(lines or ["not every target could be judged; the events `problem` say why"])


def show(
    targets: list[str],
    limits: Thresholds,
    jobs: Callable[[], Jobs] | None = None,
    on_end: Callable[[Sequence[RunSnapshot]], None] | None = None,
    config: UserConfig | None = None,
    alerts: AlertSettings | None = None,
    awaited: str = "",
) -> None:
    """Opens the screens on `targets`, until they are left. `jobs`: makes who says what the runs' jobs do; `on_end`: is
    given the runs as they were at last; `config`: the user's, read where it is not given; `alerts`: who is told of
    what; `awaited`: what to say while no run is there, where some are sure to come."""
    set_pace()
    look_for_cycles()
    from trainmon.monitor.late_session import LateMonitor

    stdin_fd = 0
    if "-" in targets:
        from trainmon.tails.stdin_source import take_stdin

        try:
            stdin_fd = take_stdin()
        except OSError as error:
            fail(f"-: standard input is closed ({error.strerror}); pipe a log into it")
    cwd = here()

    def make() -> Monitor:
        from trainmon.monitor.session import Monitor  # as much code again as the screens: they are painted before it

        gc.freeze()  # what was imported stays; each look at all objects would go through it and hold up all threads
        wanted = jobs() if jobs is not None else None
        return Monitor(targets, cwd=cwd, limits=limits, stdin_fd=stdin_fd, jobs=wanted, previews=True)

    session = LateMonitor(make)
    app = _app_on(session, config or config_of_user(), alerts)
    app.awaited, app.when_painted = awaited, session.start
    try:
        app.run()
    finally:
        session.stop()
        if app.alerting is not None:
            app.alerting.close(_PATIENCE_S)
        if on_end is not None:
            on_end(session.latest().runs)
    if app.return_code:
        sys.exit(app.return_code if app.return_code > 128 else 2)


def _app_on(session: LateMonitor, config: UserConfig, alerts: AlertSettings | None) -> TrainmonApp:
    """The screens, with the user's keys, and with whoever is to be told of alerts."""
    from trainmon.tui.app import TrainmonApp
    from trainmon.tui.keymap import key_map_of

    app = TrainmonApp(session, key_map=key_map_of(config.keys))
    if alerts is None:
        return app
    from trainmon.monitor.sinks.alerting import Alerting
    from trainmon.monitor.sinks.base import SinkError, Surroundings
    from trainmon.tails.clock import SystemClock

    around = Surroundings(SystemClock(), app.trouble.put, app.send_to_terminal, os.environ)
    try:
        app.alerting = Alerting(alerts, around, session, session.is_alive, here())
    except SinkError as error:
        session.stop()
        fail(str(error))
    return app
