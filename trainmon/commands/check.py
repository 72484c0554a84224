"""``trainmon check``: the stability report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainmon.commands.common import EXIT, echo, limit_options, limits_of, say_problems


@click.command(epilog=EXIT)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (schema trainmon.check/1) on stdout.")
@click.option("--strict", is_flag=True, help="A WARN also gives exit status 1.")
@click.option("-q", "--quiet", is_flag=True, help="Only what is wrong, a title line for each run.")
@limit_options
def check(
    targets: tuple[str, ...],
    as_json: bool,
    strict: bool,
    quiet: bool,
    threshold: float | None,
    window: int | None,
) -> None:
    """Judge runs: the stability report, and an exit status for scripts.

    TARGET is a file, a directory, a glob in quotes, or - for standard input. Without one: all runs below here.
    """
    from trainmon.monitor import check as stability
    from trainmon.monitor.document import check_document, dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=Path.cwd(), limits=limits_of(threshold, window), with_scores=False)
    status = stability.exit_status(found.runs, strict=strict, named_unjudged=found.named_unjudged)
    say_problems(found)
    if as_json:
        echo(dumps(check_document(found.runs, status, found.problems)))
    elif any(stability.is_worth_a_report(run) for run in found.runs):
        reports = [stability.report(run, quiet=quiet) for run in found.runs if stability.is_worth_a_report(run)]
        echo(("\n" if quiet else "\n\n").join(reports))
    sys.exit(status)
