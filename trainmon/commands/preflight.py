"""``trainmon preflight``: a plan checked before the run."""

from __future__ import annotations

import sys

import click

from trainmon.commands import completing
from trainmon.commands.common import echo, epilog, say_problems_of
from trainmon.commands.options import json_option, quiet_option, strict_option
from trainmon.tails.here import here


@click.command(
    epilog=epilog(
        "trainmon preflight train.yaml --gpus 64  a plan before it runs",
        "trainmon preflight train.sh model/config.json  each for itself",
        "trainmon preflight old-run/ --step-time 3.2  by what the last run logged",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="CONFIG|LOGDIR...", shell_complete=completing.targets)
@json_option("trainmon.preflight/1")
@strict_option
@quiet_option("Only what is wrong, a title line for each target.")
@click.option("--gpus", type=click.IntRange(min=1), help="How many cards the job will have.")
@click.option("--step-time", type=click.FloatRange(min=0, min_open=True, max=1e6), help="Seconds a step, if known.")
@click.option("--parameters", type=click.FloatRange(min=1, max=1e16), help="The model's size, if the config is silent.")
def preflight(
    targets: tuple[str, ...],
    as_json: bool,
    strict: bool,
    quiet: bool,
    gpus: int | None,
    step_time: float | None,
    parameters: float | None,
) -> None:
    """Before a long run: warm-up, peak rate, batch, schedule, clipping, precision, checkpoints, evaluation, logging.

    CONFIG is a JSON, YAML, TOML or Python file of settings, or a launch script; it is read as text, never run.
    LOGDIR is the directory or log of a run.
    """
    from trainmon.monitor.document import dumps
    from trainmon.monitor.finding import Verdict
    from trainmon.monitor.preflight.look import look
    from trainmon.monitor.preflight.text import document, text

    given = {"world_size": gpus, "step_time_s": step_time, "parameters": parameters}
    known = {name: float(value) for name, value in given.items() if value is not None}
    found = [look(target, here(), known) for target in targets]
    verdicts = [each.verdict for each in found]
    status = 0
    if Verdict.FAIL in verdicts or (strict and Verdict.WARN in verdicts):
        status = 1
    elif Verdict.NO_DATA in verdicts:
        status = 2
    say_problems_of(problem for each in found for problem in each.problems)
    if as_json:
        echo(dumps(document(found, status)))
    else:
        shown = [each for each in found if each.verdict is not Verdict.NO_DATA or not each.problems]
        if shown:
            echo(("\n" if quiet else "\n\n").join(text(each, quiet=quiet) for each in shown))
    sys.exit(status)
