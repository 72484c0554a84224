"""``trainmon check``: the stability report."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import cluster_trouble, echo, epilog, fail, keep_history, problems_of, say_problems_of
from trainmon.commands.jobs import job_options, job_watch_of
from trainmon.commands.options import (
    cache_option,
    history_option,
    json_option,
    limit_options,
    limits_of,
    quiet_option,
    strict_option,
    work_options,
)
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.focus import Focus
    from trainmon.monitor.judge import Judgement
    from trainmon.monitor.thresholds import Thresholds


@click.command(
    epilog=epilog(
        "trainmon check run/  the whole report",
        "trainmon check 'runs/*' -q --strict  what is wrong, 1 for a WARN too",
        "trainmon check run/ --since 2h --only loss",
        "trainmon check run/ --explain loss.spike  rule, thresholds, numbers",
        "trainmon check run/ --json | jq .runs[0].verdict",
    )
)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=completing.targets)
@json_option("trainmon.check/1")
@strict_option
@quiet_option("Only what is wrong, a title line for each run.")
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    shell_complete=completing.checks,
    help="Only these checks: an id, a group (loss) or a pattern.",
)
@click.option("--skip", multiple=True, metavar="CHECK", shell_complete=completing.checks, help="Not these checks.")
@click.option("--since", "begin", metavar="STEP|TIME", help="Count from a step (12000), a time, or a time ago (2h).")
@click.option("--max-age", metavar="TIME", help="A log whose newest data is older (10m, 2h) is not judged: status 2.")
@click.option(
    "--explain",
    metavar="CHECK",
    shell_complete=completing.checks,
    help="Rule, formula, source, thresholds and the run's numbers of one check.",
)
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Also write a SARIF 2.1.0 file.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write a JUnit XML file.")
@limit_options
@work_options
@job_options
@cache_option
@history_option
@ssh_options()
def check(
    targets: tuple[str, ...],
    as_json: bool,
    strict: bool,
    quiet: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    begin: str | None,
    max_age: str | None,
    explain: str | None,
    sarif: Path | None,
    junit: Path | None,
    threshold: float | None,
    window: int | None,
    processes: int | None,
    cluster: str | None,
    no_slurm: bool,
    pid: int | None,
) -> None:
    """Judge runs: the stability report, and an exit status for scripts.

    TARGET is a file, a directory, a glob in quotes, host:PATH, slurm:JOBID, slurm:me, or - for standard input. Without
    one: all runs below here.
    """
    from trainmon.monitor import check as stability
    from trainmon.monitor.document import check_document, dumps
    from trainmon.monitor.judge import judge

    focus = _focus(only, skip, begin, max_age)
    limits = limits_of(threshold, window)
    if explain is not None:
        _is_known(explain, as_json=as_json)
    jobs = job_watch_of(no_slurm, pid)
    with cluster_trouble():
        found = judge(
            list(targets),
            cwd=here(),
            limits=limits,
            with_scores=explain is not None,
            jobs=jobs,
            processes=processes,
            cluster=cluster,
        )
    keep_history(found.runs)
    if focus is not None:
        found = _narrowed(found, targets, focus)
    status = stability.exit_status(found.runs, strict=strict, named_unjudged=found.named_unjudged)
    problems = problems_of(found)
    say_problems_of(problems)
    _write_for_ci(found, sarif, junit, strict=strict)
    if as_json:
        echo(dumps(check_document(found.runs, status, problems)))
    elif explain is not None:
        _explain(explain, found, limits)
    elif any(stability.is_worth_a_report(run) for run in found.runs):
        reports = [stability.report(run, quiet=quiet) for run in found.runs if stability.is_worth_a_report(run)]
        echo(("\n" if quiet else "\n\n").join(reports))
    sys.exit(status)


def _is_known(check: str, *, as_json: bool) -> None:
    from trainmon.monitor import explain as explaining

    if check not in explaining.known():
        raise click.BadParameter(f"no such check; there are {', '.join(explaining.known())}", param_hint="--explain")
    if as_json:
        raise click.UsageError("--explain is text for people; --json lists every check with its thresholds")


def _explain(check: str, found: Judgement, limits: Thresholds) -> None:
    """One check of each run; its rule alone where nothing could be judged."""
    from trainmon.monitor import check as stability
    from trainmon.monitor import explain as explaining

    runs = [run for run in found.runs if stability.is_worth_a_report(run)]
    told = [explaining.text(explaining.explain(check, run), run.name) for run in runs]
    echo("\n\n".join(told or [explaining.text(explaining.explain(check, None, limits))]))


def _focus(only: tuple[str, ...], skip: tuple[str, ...], begin: str | None, max_age: str | None) -> Focus | None:
    """What the options ask to look at; None for everything."""
    if not (only or skip or begin is not None or max_age is not None):
        return None
    from trainmon.monitor.focus import Focus

    try:
        return Focus.parse(only, skip, begin, max_age)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _narrowed(found: Judgement, targets: tuple[str, ...], focus: Focus) -> Judgement:
    from trainmon.monitor.judge import is_one_unjudged

    runs, problems = focus.apply(found.runs)
    is_unjudged = is_one_unjudged(targets, runs, here())
    return replace(found, runs=runs, problems=(*found.problems, *problems), named_unjudged=is_unjudged)


def _write_for_ci(found: Judgement, sarif: Path | None, junit: Path | None, *, strict: bool) -> None:
    if sarif is None and junit is None:
        return
    from trainmon.monitor import ci_reports
    from trainmon.monitor.document import dumps
    from trainmon.tails.own_files import write_output

    texts: dict[Path, str] = {}
    if sarif is not None:
        texts[sarif] = dumps(ci_reports.sarif(found.runs, found.problems, here()))
    if junit is not None:
        texts[junit] = ci_reports.junit(found.runs, found.problems, strict=strict)
    for path, text in texts.items():
        try:
            write_output(path, text.encode() + b"\n")
        except OSError as error:
            fail(f"{path}: {error.strerror or error}; choose another place for the report")
