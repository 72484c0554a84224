"""``trainmon inventory``: what a log carries of the metric table."""

from __future__ import annotations

import sys

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, epilog, problems_of, say_problems_of
from trainmon.commands.options import cache_option, json_option, quiet_option
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here


def _share(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """A share of the time, ``1%`` or ``0.01``, as a number above 0 and below 1."""
    try:
        share = float(text.strip().removesuffix("%")) / (100.0 if text.strip().endswith("%") else 1.0)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise click.BadParameter(f"{text!r} is no share between 0 and 100%; write 1% or 0.01")
    return share


@click.command(
    epilog=epilog(
        "trainmon inventory run/  what is logged, what is missing",
        "trainmon inventory run/ -q  the gaps alone",
        status="0; 2 wrong usage, or a target that cannot be read or has no metrics",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=completing.targets)
@json_option("trainmon.inventory/1")
@click.option(
    "--share",
    callback=_share,
    default="1%",
    metavar="SHARE",
    show_default=True,
    help="Part of the time that logging may take; the sampling interval K is told for it.",
)
@quiet_option("Only the rows that are missing.")
@cache_option
@ssh_options()
def inventory(targets: tuple[str, ...], as_json: bool, share: float, quiet: bool) -> None:
    """List the 39 rows of the metric table: logged, derivable or missing, gaps first; and what logging costs."""
    from trainmon.monitor import inventory as rows
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=here())
    problems = problems_of(found)
    say_problems_of(problems)
    if as_json:
        echo(dumps(rows.documents(found.runs, share, problems)))
    elif any(run.last_step is not None for run in found.runs):
        echo("\n\n".join(rows.text(run, share, quiet=quiet) for run in found.runs if run.last_step is not None))
    sys.exit(0 if any(run.last_step is not None for run in found.runs) and not found.problems else 2)
