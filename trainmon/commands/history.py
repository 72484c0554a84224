"""``trainmon history``: verdicts of runs seen before, and what comes back over them."""

from __future__ import annotations

import sys

import click

from trainmon.commands.common import echo, epilog, fail
from trainmon.commands.options import json_option, quiet_option


@click.command(
    epilog=epilog(
        "trainmon history  the last 30 runs",
        "trainmon history llama -n 5",
        status="0; 2 wrong usage, or the history cannot be read",
    )
)
@click.argument("words", required=False, default="", metavar="[WORDS]")
@json_option("trainmon.history/1")
@quiet_option("One line a run, and what comes back.")
@click.option("-n", "--limit", type=click.IntRange(1, 20_000), default=30, show_default=True, help="How many runs.")
def history(words: str, as_json: bool, quiet: bool, limit: int) -> None:
    """List runs that were judged before, and the faults, nodes, ranks, layers and data sources that come back.

    With WORDS only the runs whose name or path holds them. `check` and `watch` keep it, in your own data folder;
    --no-history there, or TRAINMON_HISTORY=off, keeps nothing.
    """
    from trainmon.monitor.document import dumps
    from trainmon.monitor.history import History, HistoryError, document
    from trainmon.monitor.report.content import moment
    from trainmon.tails.text import printable

    book = History()
    try:
        runs, again, problems = book.runs(limit, words), book.recurrences(), book.problems()
    except HistoryError as error:
        fail(printable(str(error)))
    if as_json:
        echo(dumps(document(runs, again, problems)))
        return
    for problem in problems:
        click.echo(f"trainmon: {printable(problem)}", err=True)
    if not runs:
        click.echo(f"trainmon: no run {'of that name ' if words else ''}was judged before", err=True)
        sys.exit(0)
    for run in runs:
        step = "" if run.last_step is None else f"  step {run.last_step:.15g}"
        echo(f"{moment(run.last_seen)}  {run.verdict:<8}{run.state:<14}{printable(run.name, 60)}{step}")
        if run.verdict in ("WARN", "FAIL") and run.reason and not quiet:
            echo(f"    {printable(run.reason, 160)}")
    told = [each for each in again if not words or any(words.lower() in name.lower() for name in each.runs)]
    if told:
        echo("\nComes back:")
        for each in told[:20]:
            names = ", ".join(printable(name, 40) for name in each.runs[:4]) + (", ..." if len(each.runs) > 4 else "")
            echo(f"  {printable(each.words, 160)}: {names}")
