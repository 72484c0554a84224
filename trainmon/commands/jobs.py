"""Options of the commands that ask for the state of a run's job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainmon.monitor.slurm.everywhere import Jobs


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--no-slurm`` and ``--pid``, which `job_watch_of` takes."""
    command = click.option(
        "--pid",
        type=click.IntRange(min=1),
        metavar="PID",
        help="The process that is the run: what /proc says of it counts (where there is no scheduler).",
    )(command)
    return click.option("--no-slurm", is_flag=True, help="Do not ask Slurm (squeue, sacct) for the runs' jobs.")(
        command
    )


def job_watch_of(no_slurm: bool, pid: int | None) -> Jobs:
    """Who says what the runs' jobs do. Raises UsageError when there is no process `pid`."""
    require_process(pid)
    from trainmon.monitor.slurm.everywhere import Jobs
    from trainmon.tails.clock import SystemClock

    return Jobs(SystemClock(), is_on=not no_slurm, pid=pid)


def require_process(pid: int | None) -> None:
    """Raises UsageError when there is no process `pid`; None stands for any."""
    if pid is not None and not Path(f"/proc/{pid}").is_dir():
        raise click.BadParameter(f"there is no process {pid} on this machine", param_hint="--pid")
