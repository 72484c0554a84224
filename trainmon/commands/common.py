"""What the commands share: options, exit statuses, and how they print and fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from trainmon.monitor.judge import Judgement
    from trainmon.monitor.snapshot import RunSnapshot
    from trainmon.monitor.thresholds import Thresholds

# numpy's BLAS threads cost CPU and memory and nothing here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

EXIT = """\b
Exit status: 0 judged, no FAIL; 1 at least one FAIL (or WARN with --strict);
2 wrong usage, or nothing could be judged; 130 interrupted."""


def echo(text: str) -> None:
    """Prints for whoever reads; when the reader of a pipe has gone (head, less), the rest goes nowhere."""
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        stop_printing()


def stop_printing() -> None:
    """Points standard output at /dev/null: its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Trouble(click.ClickException):
    """What ends a command with status 2: one line on stderr, unless it `was_said` there before."""

    exit_code = 2

    def __init__(self, *problems: str, was_said: bool = False) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.was_said = was_said

    def show(self, file: Any = None) -> None:
        """Prints the line."""
        from trainmon.tails.text import printable

        if not self.was_said:
            click.echo(f"trainmon: {printable(self.message, 4000)}", file=file, err=file is None)


def fail(message: str) -> NoReturn:
    """Ends with one line on stderr and status 2, and with a document where ``--json`` asks for one."""
    raise Trouble(message)


def give_up(lines: Iterable[str]) -> NoReturn:
    """Ends as `fail`, after `lines` were said on stderr."""
    raise Trouble(*dict.fromkeys(lines), was_said=True)


def _finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number above 0")
    return value


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --threshold and --window."""
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


def _no_cache(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        os.environ["TRAINMON_CACHE"] = "off"  # for the worker processes too


def cache_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --no-cache."""
    return click.option(
        "--no-cache",
        is_flag=True,
        expose_value=False,
        callback=_no_cache,
        help="Read large logs anew and keep nothing of them (as TRAINMON_CACHE=off).",
    )(command)


def quiet_option(told: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --quiet, whose help says what is `told` all the same."""
    return click.option("-q", "--quiet", is_flag=True, help=told)


def limits_of(threshold: float | None, window: int | None) -> Thresholds:
    """The thresholds that the flags set."""
    from trainmon.monitor.thresholds import Thresholds

    limits = Thresholds()
    if threshold is not None:
        limits = limits.override({"clip": threshold}, source="flag --threshold")
    if window is not None:
        limits = limits.override({"window": float(window)}, source="flag --window")
    return limits


def say_problems(found: Judgement) -> None:
    """One line on stderr for each target that could not be read, and for each run that holds nothing to judge."""
    say_problems_of(problems_of(found))


def problems_of(found: Judgement) -> list[str]:
    """The lines of `say_problems`."""
    from trainmon.monitor import check as stability

    lines = list(found.problems)
    for run in found.runs:
        if stability.is_worth_a_report(run):
            lines += [file.problem for file in run.files if file.problem]
        else:
            lines.append(stability.why_nothing(run))
    if not found.runs and not lines:
        lines.append(found.searched)
    return lines


def say_problems_of(lines: Iterable[str]) -> None:
    """Each line once, on stderr."""
    from trainmon.tails.text import printable

    for line in dict.fromkeys(lines):
        click.echo(f"trainmon: {printable(line)}", err=True)


def speaks_unicode() -> bool:
    """Whether standard output can take box and braille characters."""
    try:
        "\u2800\u2502".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def history_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --no-history."""

    def turn_off(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            os.environ["TRAINMON_HISTORY"] = "off"

    return click.option(
        "--no-history",
        is_flag=True,
        expose_value=False,
        callback=turn_off,
        help="Do not keep the verdict for `trainmon history`.",
    )(command)


def keep_history(runs: Iterable[RunSnapshot]) -> None:
    """Keeps what was judged, unless the user does not want that; one line where it cannot be kept."""
    if os.environ.get("TRAINMON_HISTORY", "").lower() in ("off", "0", "no", "false"):
        return
    from trainmon.monitor.history import History, HistoryError
    from trainmon.tails.clock import SystemClock

    try:
        History().record(runs, SystemClock().wall())
    except HistoryError as error:
        say_problems_of([str(error)])


@contextmanager
def cluster_trouble() -> Iterator[None]:
    """Ends with one line and status 2 when a dask cluster that was named cannot be used."""
    from trainmon.monitor.workers import ClusterError

    try:
        yield
    except ClusterError as error:
        fail(str(error))


def work_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --jobs and --dask: `processes` and `cluster`."""
    command = click.option(
        "--dask",
        "cluster",
        metavar="ADDRESS",
        help="Let the workers of this dask scheduler (tcp://HOST:PORT) read and judge; they must see the same files.",
    )(command)
    return click.option(
        "--jobs",
        "processes",
        type=click.IntRange(min=1, max=256),
        help="Processes that read and judge: all cores where that pays.",
    )(command)
