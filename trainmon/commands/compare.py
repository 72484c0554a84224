"""``trainmon compare``: runs at the same x."""

from __future__ import annotations

import sys

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, epilog, give_up, problems_of, say_problems_of, speaks_unicode
from trainmon.commands.options import by_option, cache_option, quiet_option, signals_option
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here


@click.command(
    epilog=epilog(
        "trainmon compare base/ new/  loss at the same tokens or step",
        "trainmon compare 'sweep/*' --by flops -s eval.nll",
        "trainmon compare base/ new/ --format markdown > table.md",
        status="0 compared; 2 wrong usage, or nothing that could be compared",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="RUN RUN...", shell_complete=completing.targets)
@signals_option("What to compare (loss.train).")
@by_option("The same amount of what: tokens where batch sizes differ and are known, else steps.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "csv", "json"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@click.option(
    "--json", "form", flag_value="json", help="One JSON document (schema trainmon.compare/1), as --format json."
)
@quiet_option("Only the verdicts: better, worse, or within the noise.")
@cache_option
@ssh_options()
def compare(targets: tuple[str, ...], signals: tuple[str, ...], axis: str | None, form: str, quiet: bool) -> None:
    """Put runs side by side at the same x: which is better, and is that more than noise?

    Each RUN is a file, a directory or a glob in quotes; the first run found is what the others are held against.
    """
    from trainmon.monitor.compare import judging as comparing
    from trainmon.monitor.compare import text as printing
    from trainmon.monitor.compare.alignment import AXES
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=here())
    problems = problems_of(found)
    runs = [run for run in found.runs if run.series]
    if len(runs) < 2:
        problems.append(f"compare needs two runs with metrics, found {len(runs)}")
    say_problems_of(problems)
    if len(runs) < 2:
        give_up(problems)
    by = next((known for known in AXES if known == axis), None)
    results = [comparing.compare(runs, signal, by) for signal in signals or ("loss.train",)]
    is_in_vain = all(each.difference is None for result in results for each in result.differences)
    if is_in_vain:
        told = "; ".join(dict.fromkeys(remark for result in results for remark in result.remarks))
        problems.append(told or "; ".join(dict.fromkeys(each.why for result in results for each in result.differences)))
        say_problems_of(problems[-1:])
    if form == "json":
        echo(dumps(printing.document(results, problems)))
    elif form == "csv":
        echo("".join(printing.table_csv(result) for result in results).rstrip("\n"))
    elif quiet:
        say_problems_of(
            f"{result.signal}: no common stretch to compare" for result in results if not result.differences
        )
        echo("\n".join(line for result in results for line in printing.verdicts(result)))
    else:
        echo(
            "\n\n".join(
                printing.text(result, markdown=form == "markdown", ascii_only=not speaks_unicode())
                for result in results
            )
        )
    sys.exit(2 if is_in_vain else 0)
