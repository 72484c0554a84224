"""``trainmon inventory``: what a log carries of the metric table."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainmon.commands.common import EXIT, echo, say_problems
from trainmon.commands.reach import ssh_options


@click.command(epilog=EXIT)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (schema trainmon.inventory/1) on stdout.")
@ssh_options()
def inventory(targets: tuple[str, ...], as_json: bool) -> None:
    """List the 39 rows of the metric table: logged, derivable or missing, gaps first."""
    from trainmon.monitor import inventory as rows
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=Path.cwd())
    say_problems(found)
    if as_json:
        echo(dumps(rows.documents(found.runs)))
    elif found.runs:
        echo("\n\n".join(rows.text(run) for run in found.runs))
    sys.exit(0 if any(run.last_step is not None for run in found.runs) and not found.problems else 2)
