"""``trainmon export``: the values that were read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import cache_option, fail, stop_printing
from trainmon.commands.reach import ssh_options

if TYPE_CHECKING:
    from trainmon.monitor.alignment import Axis


@click.command(epilog="Exit status: 0 written; 2 wrong usage, or a target or all that was asked for is not there.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=completing.targets)
@click.option(
    "-s",
    "--signal",
    "signals",
    multiple=True,
    metavar="NAME",
    shell_complete=completing.signals,
    help="A signal (loss.train, grad.norm, ...); may be given several times.",
)
@click.option(
    "--by",
    "axis",
    type=click.Choice(["tokens", "flops", "step", "time"]),
    help="Also a column of that: tokens, flops, or time_s (seconds of training); steps are always there.",
)
@click.option(
    "--raw", "--raw-keys", "raw_keys", is_flag=True, help="NAMEs are the log's own keys; values as the log wrote them."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    default="csv",
    show_default=True,
    help="CSV, JSON lines, or parquet (needs --output).",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of stdout.")
@cache_option
@ssh_options(short_o=False)
def export(
    targets: tuple[str, ...],
    signals: tuple[str, ...],
    axis: Axis | None,
    raw_keys: bool,
    form: str,
    output: Path | None,
) -> None:
    """Print the values that were read: one row a logged value, every attempt, in file order.

    Without --signal: lists the signals and keys that the log carries.
    """
    from trainmon.monitor.export import export_to

    if raw_keys and axis not in (None, "step") and "-" in targets:
        raise click.UsageError("--raw with --by reads a log twice: name a file, not standard input")
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet is binary: name a file with --output")
    try:
        status = export_to(
            list(targets), list(signals), cwd=Path.cwd(), raw_keys=raw_keys, form=form, output=output, axis=axis
        )
    except BrokenPipeError:
        stop_printing()
        status = 0
    except OSError as error:
        fail(f"{output or 'standard output'}: {error.strerror or error}; choose another place with --output")
    sys.exit(status)
