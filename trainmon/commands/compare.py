"""``trainmon compare``: runs at the same x."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainmon.commands import completing
from trainmon.commands.common import EXIT, cache_option, echo, fail, say_problems, speaks_unicode
from trainmon.commands.reach import ssh_options


@click.command(epilog=EXIT)
@click.argument("targets", nargs=-1, required=True, metavar="RUN RUN...", shell_complete=completing.targets)
@click.option(
    "-s",
    "--signal",
    "signals",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.signals,
    help="What to compare (loss.train).",
)
@click.option(
    "--by",
    "axis",
    type=click.Choice(["tokens", "flops", "step", "time"]),
    help="The same amount of what: tokens where batch sizes differ and are known, else steps.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "csv", "json"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@cache_option
@ssh_options()
def compare(targets: tuple[str, ...], signals: tuple[str, ...], axis: str | None, form: str) -> None:
    """Put runs side by side at the same x: which is better, and is that more than noise?

    Each RUN is a file, a directory or a glob in quotes; the first run found is what the others are held against.
    """
    from trainmon.monitor import compare as comparing
    from trainmon.monitor import compare_text as printing
    from trainmon.monitor.alignment import AXES
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=Path.cwd())
    say_problems(found)
    runs = [run for run in found.runs if run.series]
    if len(runs) < 2:
        fail(f"compare needs two runs with metrics, found {len(runs)}")
    by = next((known for known in AXES if known == axis), None)
    results = [comparing.compare(runs, signal, by) for signal in signals or ("loss.train",)]
    if form == "json":
        echo(dumps(printing.document(results)))
    elif form == "csv":
        echo("".join(printing.table_csv(result) for result in results).rstrip("\n"))
    else:
        echo(
            "\n\n".join(
                printing.text(result, markdown=form == "markdown", ascii_only=not speaks_unicode())
                for result in results
            )
        )
    sys.exit(2 if all(standing.value is None for result in results for standing in result.standings) else 0)
