"""``trainmon export``: the values that were read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmon.commands import completing
from trainmon.commands.common import epilog, fail, stop_printing
from trainmon.commands.options import by_option, cache_option, output_option, quiet_option, signals_option
from trainmon.commands.reach import ssh_options
from trainmon.tails.here import here

if TYPE_CHECKING:
    from trainmon.monitor.compare.alignment import Axis


@click.command(
    epilog=epilog(
        "trainmon export run/  the names it has",
        "trainmon export run/ -s loss.train -s grad.norm  two columns",
        "trainmon export run/ -s loss.train --by tokens -o loss.csv",
        "trainmon export run/ -s 'lm loss' --raw --format jsonl  as the log wrote it",
        status="0 written; 2 wrong usage, or a target or all that was asked for is not there",
    )
)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...", shell_complete=completing.targets)
@signals_option("A signal (loss.train, grad.norm, ...); may be given several times.")
@by_option("Also a column of that: tokens, flops, or time_s (seconds of training); steps are always there.")
@click.option(
    "--raw", "--raw-keys", "raw_keys", is_flag=True, help="NAMEs are the log's own keys; values as the log wrote them."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl", "json", "parquet"]),
    default="csv",
    show_default=True,
    help="CSV, JSON lines, one JSON document, or parquet (needs --output).",
)
@click.option(
    "--json", "form", flag_value="json", help="One JSON document (schema trainmon.export/1), as --format json."
)
@output_option("Write here instead of stdout.")
@quiet_option("Do not tell of columns that stay empty.")
@cache_option
@ssh_options(short_o=False)
def export(
    targets: tuple[str, ...],
    signals: tuple[str, ...],
    axis: Axis | None,
    raw_keys: bool,
    form: str,
    output: Path | None,
    quiet: bool,
) -> None:
    """Print the values that were read: one row a logged value, every attempt, in file order.

    Without --signal: lists the signals and keys that the log carries.
    """
    from trainmon.monitor.export.content import export_to
    from trainmon.monitor.export.forms import ExportError

    if raw_keys and axis not in (None, "step") and "-" in targets:
        raise click.UsageError("--raw with --by reads a log twice: name a file, not standard input")
    try:
        status = export_to(
            list(targets),
            list(signals),
            cwd=here(),
            raw_keys=raw_keys,
            form=form,
            output=output,
            axis=axis,
            quiet=quiet,
        )
    except ExportError as error:
        raise click.UsageError(str(error)) from None
    except BrokenPipeError:
        stop_printing()
        status = 0
    except OSError as error:
        fail(f"{output or 'standard output'}: {error.strerror or error}; choose another place with --output")
    sys.exit(status)
