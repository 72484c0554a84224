"""What the commands share: exit statuses, and how they print and fail. Their options are in `options`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from trainmon.monitor.judge import Judgement
    from trainmon.monitor.snapshot import RunSnapshot

# numpy's BLAS threads cost CPU and memory and nothing here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_WIDTH = 78  # of a help page
# New objects between two looks for cycles, and so many of those between looks at what has survived them. All threads
# wait meanwhile: for 60 ms with 50,000 objects, which a key waits too.
_LIVE = (10_000, 2)
_JUDGED = """\b
Exit status: 0 judged, no FAIL; 1 at least one FAIL (or WARN with --strict);
2 wrong usage, or nothing could be judged; 130 interrupted."""


def epilog(*examples: str, status: str = "") -> str:
    """The foot of a command's help: examples, a command line and after two spaces what it does, and exit statuses:
    what stands in `status` for 0 and 2, those of a judgement unless it is given."""
    parts = [example.partition("  ")[::2] for example in examples]
    fit = [words for words, told in parts if told and len(words) + len(told) < _WIDTH - 4]
    width = max(map(len, fit), default=0)
    lines = []
    for words, told in parts:
        line = f"  {words:{width}}  {told}".rstrip()
        lines += [line] if len(line) <= _WIDTH else [f"  {words}", f"      {told}"]
    end = f"Exit status: {status}; 130 interrupted." if status else _JUDGED
    return "\n".join(["\b", "Examples:", *lines, "", end])


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


def require_screens(instead: str) -> None:
    """Ends unless screens can be drawn here. `instead`: what works all the same."""
    if not sys.stdout.isatty():
        fail(f"standard output is no terminal; {instead}")
    if os.environ.get("TERM") == "dumb":
        fail(
            "this terminal cannot draw screens (TERM is dumb); set TERM to what it is, such as xterm-256color, or "
            + instead
        )


def give_up(lines: Iterable[str]) -> NoReturn:
    """Ends as `fail`, after `lines` were said on stderr."""
    raise Trouble(*dict.fromkeys(lines), was_said=True)


def say_problems(found: Judgement) -> None:
    """One line on stderr for each target that could not be read, and for each run that holds nothing to judge."""
    say_problems_of(problems_of(found))


def problems_of(found: Judgement) -> list[str]:
    """The lines of `say_problems`."""
    from trainmon.monitor import check as stability
    from trainmon.monitor.finding import Verdict

    lines = list(found.problems)
    for run in found.runs:
        if stability.is_worth_a_report(run):
            lines += [file.problem for file in run.files if file.problem]
            if run.verdict is Verdict.NO_DATA:
                lines.append(f"{run.name}: {run.verdict_reason}")
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


def look_for_cycles() -> None:
    """For what runs for weeks: objects that hold each other are found sooner than those of a short command."""
    gc.set_threshold(*_LIVE)


@contextmanager
def cluster_trouble() -> Iterator[None]:
    """Ends with one line and status 2 when a dask cluster that was named cannot be used."""
    from trainmon.monitor.workers import ClusterError

    try:
        yield
    except ClusterError as error:
        fail(str(error))
