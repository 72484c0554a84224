"""``trainmon calibrate``: thresholds from healthy runs."""

from __future__ import annotations

from pathlib import Path

import click

from trainmon.commands import completing
from trainmon.commands.common import cluster_trouble, echo, epilog, fail, give_up, say_problems_of
from trainmon.commands.options import cache_option, json_option, output_option, quiet_option, work_options
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here


@click.command(
    epilog=epilog(
        "trainmon calibrate 'runs/2025-*' -o runs/trainmon.toml",
        "trainmon calibrate good/ --false-alarms 1/1M --accept loss.spike",
        status="0 written; 2 wrong usage, or no healthy run to learn from",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="RUN...", shell_complete=completing.targets)
@click.option(
    "--false-alarms",
    "budget",
    default="1/100000steps",
    show_default=True,
    metavar="N/STEPS",
    help="Warnings that healthy training may give, all checks together.",
)
@output_option(
    "The file to write: trainmon.toml beside the runs, in the deepest directory that holds them all, unless you name"
    " another. It holds for logs in its directory and below."
)
@click.option(
    "--accept",
    multiple=True,
    metavar="CHECK",
    help="Learn from runs although this check WARNs: healthy runs of yours look so.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option("trainmon.calibrate/1")
@quiet_option("Do not say what was learned.")
@work_options
@cache_option
@ssh_options(short_o=False)
def calibrate(
    targets: tuple[str, ...],
    budget: str,
    output: Path | None,
    accept: tuple[str, ...],
    force: bool,
    as_json: bool,
    quiet: bool,
    processes: int | None,
    cluster: str | None,
) -> None:
    """Learn thresholds from healthy runs, for the next runs beside them.

    A run that is not healthy is refused, with the check that speaks against it. RUN is a file, a directory or a glob
    in quotes.
    """
    from trainmon.monitor.calibrate import file as calibrate_file
    from trainmon.monitor.calibrate.learning import CalibrationError
    from trainmon.monitor.calibrate.learning import calibrate as learn
    from trainmon.monitor.detectors.registry import DETECTORS
    from trainmon.monitor.document import dumps
    from trainmon.tails.clock import SystemClock
    from trainmon.tails.own_files import write_output

    try:
        rate = calibrate_file.parse_rate(budget)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--false-alarms") from None
    if "-" in targets:
        raise click.UsageError("runs are read several times: name files or directories, not standard input")
    unknown = sorted(set(accept) - {detector.id for detector in DETECTORS})
    if unknown:
        raise click.BadParameter(f"no such check: {', '.join(unknown)}", param_hint="--accept")
    output = output or calibrate_file.beside(targets, here())
    if output.exists() and output.is_file() and not force:
        fail(f"{output} is there already; choose another place with -o, or replace it with --force")
    try:
        with cluster_trouble():
            found = learn(targets, cwd=here(), rate=rate, accepted=accept, processes=processes, cluster=cluster)
    except CalibrationError as error:
        said = [*(f"refused {refusal.name}: {refusal.why}" for refusal in error.refused), str(error)]
        say_problems_of(said)
        give_up(said)
    say_problems_of(found.problems)
    try:
        write_output(output, calibrate_file.content(found, SystemClock().wall()).encode())
    except OSError as error:
        fail(f"{output}: {error.strerror or error}; choose another place with -o")
    if as_json:
        echo(dumps(calibrate_file.document(found, str(output))))
    elif not quiet:
        echo(calibrate_file.summary(found, str(output)))
