"""The command line: a thin layer over monitor and tui. Nothing heavy is imported before its command runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainmon import version

if TYPE_CHECKING:
    from trainmon.monitor.judge import Judgement
    from trainmon.monitor.thresholds import Thresholds

# numpy's BLAS threads cost CPU and memory and nothing here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_EXIT = """\b
Exit status: 0 judged, no FAIL; 1 at least one FAIL (or WARN with --strict);
2 wrong usage, or nothing could be judged; 130 interrupted."""


class _Group(click.Group):
    """Ends with status 130 on Ctrl-C, and with one line and status 2 for whatever cannot be done."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the command."""
        _tolerate_odd_streams()
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.Exit as leave:
            sys.exit(leave.exit_code)
        except click.exceptions.NoArgsIsHelpError as usage:
            usage.show()
            sys.exit(2)
        except click.ClickException as usage:
            usage.show()
            _document_of_failure(usage.format_message())
            sys.exit(usage.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)
        except BrokenPipeError:
            _stop_printing()
            sys.exit(0)
        except OSError as error:
            _fail(f"{error.filename or 'standard output'}: {error.strerror or error}")
        except Exception as error:  # the top of the program: nothing is a traceback, and 1 would mean a FAIL
            _fail(f"internal error, please report it: {type(error).__name__}: {error}")


def _tolerate_odd_streams() -> None:
    """Closed streams become /dev/null; what a stream's encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives as long as we
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _document_of_failure(message: str) -> None:
    """CLI.md: ``--json`` always prints a document, also when the command line is wrong."""
    if "--json" not in sys.argv:
        return
    from trainmon.monitor.document import check_document, dumps

    document = check_document((), 2, (message,))
    if "inventory" in sys.argv[1:2]:
        document = {"schema": "trainmon.inventory/1", "version": version(), "rows": [], "problems": [message]}
    _print(dumps(document))


def _print(text: str) -> None:
    """Prints for whoever reads; when the reader of a pipe has gone (head, less), the rest goes nowhere."""
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _stop_printing()


def _stop_printing() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version(), prog_name="trainmon")
def main() -> None:
    """See which training run is in trouble, what kind, since which step, and what to do.

    \b
    Look:    trainmon watch [TARGET...]      screens; no TARGET: all runs below here
             trainmon demo                   the same on simulated runs
    Judge:   trainmon check [TARGET...]      stability report and exit status
    Compare: trainmon compare RUN RUN...     at the same tokens or steps; better, worse, or noise
    Read:    trainmon export TARGET -s ...   the values, as CSV or JSON lines
             trainmon inventory TARGET       which signals are logged, which are missing

    trainmon only reads. It never touches a job, its code or its files.
    """


def _finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number above 0")
    return value


def _limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--threshold",
        type=click.FloatRange(min=0, min_open=True, max=1e12),
        callback=_finite,
        help="Clip threshold c of the gradient norm (1.0).",
    )(command)
    return click.option(
        "--window",
        type=click.IntRange(min=10, max=100_000),
        help="Window W of the spike score, in logged values (100).",
    )(command)


def _limits(threshold: float | None, window: int | None) -> Thresholds:
    from trainmon.monitor.thresholds import Thresholds

    limits = Thresholds()
    if threshold is not None:
        limits = limits.override({"clip": threshold}, source="flag --threshold")
    if window is not None:
        limits = limits.override({"window": float(window)}, source="flag --window")
    return limits


def _fail(message: str) -> NoReturn:
    click.echo(f"trainmon: {message}", err=True)
    sys.exit(2)


@main.command(epilog=_EXIT)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (schema trainmon.check/1) on stdout.")
@click.option("--strict", is_flag=True, help="A WARN also gives exit status 1.")
@click.option("-q", "--quiet", is_flag=True, help="Only what is wrong, a title line for each run.")
@_limit_options
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

    found = judge(list(targets), cwd=Path.cwd(), limits=_limits(threshold, window), with_scores=False)
    status = stability.exit_status(found.runs, strict=strict, named_unjudged=found.named_unjudged)
    _say_problems(found)
    if as_json:
        _print(dumps(check_document(found.runs, status, found.problems)))
    elif any(stability.is_worth_a_report(run) for run in found.runs):
        reports = [stability.report(run, quiet=quiet) for run in found.runs if stability.is_worth_a_report(run)]
        _print(("\n" if quiet else "\n\n").join(reports))
    sys.exit(status)


def _say_problems(found: Judgement) -> None:
    """One line on stderr for each target that could not be read, and for each run that holds nothing to judge."""
    from trainmon.monitor import check as stability
    from trainmon.tails.text import printable

    lines = list(found.problems)
    for run in found.runs:
        if stability.is_worth_a_report(run):
            lines += [file.problem for file in run.files if file.problem]
        else:
            lines.append(stability.why_nothing(run))
    if not found.runs and not lines:
        lines.append(found.searched)
    for line in dict.fromkeys(lines):
        click.echo(f"trainmon: {printable(line)}", err=True)


@main.command(epilog=_EXIT)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--headless", is_flag=True, help="No screen: one JSON object a line, exit status as `check`.")
@click.option("--records", is_flag=True, help="With --headless: a `record` event for each training record.")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="With --headless: end after so long without news.",
)
@_limit_options
def watch(
    targets: tuple[str, ...],
    headless: bool,
    records: bool,
    until_idle: float | None,
    threshold: float | None,
    window: int | None,
) -> None:
    """Watch runs live. Press ? for the keys, q to quit.

    TARGET is a file, a directory, a glob in quotes, or - for standard input. Without one: all runs below here.
    """
    limits = _limits(threshold, window)
    if headless:
        from trainmon.monitor.headless import run_headless

        try:
            status = run_headless(
                list(targets), cwd=Path.cwd(), limits=limits, records=records, until_idle_s=until_idle
            )
        except BrokenPipeError:
            _stop_printing()
            status = 0
        sys.exit(status)
    if records or until_idle is not None:
        raise click.UsageError("--records and --until-idle go with --headless")
    if not sys.stdout.isatty():
        _fail("standard output is no terminal; use `trainmon watch --headless` there, or `trainmon check`")
    _watch(list(targets), limits)


def _watch(targets: list[str], limits: Thresholds) -> None:
    from trainmon.monitor.session import Monitor
    from trainmon.tails.stdin_source import take_stdin

    stdin_fd = 0
    if "-" in targets:
        try:
            stdin_fd = take_stdin()
        except OSError as error:
            _fail(f"-: standard input is closed ({error.strerror}); pipe a log into it")
    session = Monitor(targets, cwd=Path.cwd(), limits=limits, stdin_fd=stdin_fd)
    from trainmon.tui.app import TrainmonApp

    app = TrainmonApp(session)
    session.start()
    try:
        app.run()
    finally:
        session.stop()
    if app.return_code:
        sys.exit(app.return_code if app.return_code > 128 else 2)


@main.command(epilog=_EXIT)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "-s",
    "--signal",
    "signals",
    multiple=True,
    metavar="NAME",
    help="A signal (loss.train, grad.norm, ...); may be given several times.",
)
@click.option("--raw-keys", is_flag=True, help="NAMEs are the log's own keys; values as the log wrote them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    default="csv",
    show_default=True,
    help="CSV, JSON lines, or parquet (needs --output).",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write here instead of stdout.")
def export(targets: tuple[str, ...], signals: tuple[str, ...], raw_keys: bool, form: str, output: Path | None) -> None:
    """Print the values that were read: one row a logged value, every attempt, in file order.

    Without --signal: lists the signals and keys that the log carries.
    """
    from trainmon.monitor.export import export_to

    try:
        status = export_to(list(targets), list(signals), cwd=Path.cwd(), raw_keys=raw_keys, form=form, output=output)
    except BrokenPipeError:
        _stop_printing()
        status = 0
    except OSError as error:
        _fail(f"{output or 'standard output'}: {error.strerror or error}; choose another place with --output")
    sys.exit(status)


@main.command(epilog=_EXIT)
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (schema trainmon.inventory/1) on stdout.")
def inventory(targets: tuple[str, ...], as_json: bool) -> None:
    """List the 39 rows of the metric table: logged, derivable or missing, gaps first."""
    from trainmon.monitor import inventory as rows
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=Path.cwd())
    _say_problems(found)
    if as_json:
        _print(dumps(rows.documents(found.runs)))
    elif found.runs:
        _print("\n\n".join(rows.text(run) for run in found.runs))
    sys.exit(0 if any(run.last_step is not None for run in found.runs) and not found.problems else 2)


@main.command(epilog=_EXIT)
@click.argument("targets", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("-s", "--signal", "signals", multiple=True, metavar="NAME", help="What to compare (loss.train).")
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
def compare(targets: tuple[str, ...], signals: tuple[str, ...], axis: str | None, form: str) -> None:
    """Put runs side by side at the same x: which is better, and is that more than noise?

    Each RUN is a file, a directory or a glob in quotes; the first run found is what the others are held against.
    """
    from trainmon.monitor import compare as comparing
    from trainmon.monitor.alignment import AXES
    from trainmon.monitor.document import dumps
    from trainmon.monitor.judge import judge

    found = judge(list(targets), cwd=Path.cwd())
    _say_problems(found)
    runs = [run for run in found.runs if run.series]
    if len(runs) < 2:
        _fail(f"compare needs two runs with metrics, found {len(runs)}")
    by = next((known for known in AXES if known == axis), None)
    results = [comparing.compare(runs, signal, by) for signal in signals or ("loss.train",)]
    if form == "json":
        _print(dumps(comparing.document(results)))
    elif form == "csv":
        _print("".join(comparing.table_csv(result) for result in results).rstrip("\n"))
    else:
        _print("\n\n".join(comparing.text(result, markdown=form == "markdown") for result in results))
    sys.exit(2 if all(standing.value is None for result in results for standing in result.standings) else 0)


@main.command(epilog="Exit status: 0, or that of `watch`.")
@click.option("--seed", type=int, default=0, show_default=True, help="Same seed, same runs.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write the runs' logs here and end; no screen."
)
@click.option("--keep", is_flag=True, help="Keep the temporary directory with the logs.")
def demo(seed: int, out: Path | None, keep: bool) -> None:
    """Watch simulated runs that meet trouble within a minute: real log files, written as they would be."""
    from trainmon.monitor import simulate

    if out is not None:
        try:
            simulate.write_finished(out, seed=seed)
        except OSError as error:
            _fail(f"{out}: {error.strerror or error}; give a directory that can be written")
        click.echo(f"wrote simulated runs below {out}; try: trainmon check {out}")
        return
    if not sys.stdout.isatty():
        _fail("standard output is no terminal; `trainmon demo --out DIR` only writes the logs")
    _demo(seed, keep)


def _demo(seed: int, keep: bool) -> None:
    import shutil
    import tempfile
    import threading

    from trainmon.monitor import simulate
    from trainmon.monitor.thresholds import Thresholds
    from trainmon.tails.clock import SystemClock

    directory = Path(tempfile.mkdtemp(prefix="trainmon-demo-"))
    stop = threading.Event()
    writer = threading.Thread(
        target=simulate.serve, args=(directory, seed, SystemClock(), stop), name="trainmon-demo", daemon=True
    )
    writer.start()
    try:
        _watch([str(directory)], Thresholds())
    finally:
        stop.set()
        writer.join(timeout=5.0)
        if keep:
            click.echo(f"the demo's logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
