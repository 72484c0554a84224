"""The command line: the table of commands. Nothing of a command is imported before it runs."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

import click

from trainmon import version, version_line
from trainmon.commands.common import Trouble, echo, stop_printing


class Entry(NamedTuple):
    """One command: its name (also that of its module and function), where it stands in the help, what it is for.

    `schema`: of its ``--json`` document, of which what it `holds` is empty when nothing could be done.
    """

    name: str
    group: str
    takes: str
    help: str
    schema: str = ""
    holds: str = "runs"


COMMANDS = (
    Entry("watch", "Look", "[TARGET...]", "screens; without a TARGET: all runs below here"),
    Entry("demo", "Look", "", "the same on simulated runs", "trainmon.demo/1"),
    Entry("replay", "Look", "RUN", "a finished log played as if it were live", "trainmon.replay/1", "files"),
    Entry("check", "Judge", "[TARGET...]", "stability report and exit status", "trainmon.check/1"),
    Entry("preflight", "Judge", "CONFIG...", "a plan checked before the run", "trainmon.preflight/1", "targets"),
    Entry(
        "compare", "Judge", "RUN RUN...", "at the same x: better, worse, or noise", "trainmon.compare/1", "comparisons"
    ),
    Entry(
        "calibrate",
        "Judge",
        "RUN... -o FILE",
        "thresholds from healthy runs for the next",
        "trainmon.calibrate/1",
    ),
    Entry("report", "Judge", "RUN", "an incident or hand-over report of one file", "trainmon.report/1", "run"),
    Entry(
        "note",
        "Judge",
        "RUN [TEXT]",
        "a remark in the log book, drawn on the curves",
        "trainmon.notes/1",
        "notes",
    ),
    Entry("history", "Read", "[WORDS]", "runs judged before, faults that come back", "trainmon.history/1"),
    Entry("export", "Read", "TARGET -s NAME", "the values, as CSV, JSON or parquet", "trainmon.export/1", "rows"),
    Entry("inventory", "Read", "TARGET", "which signals are logged, which missing", "trainmon.inventory/1", "rows"),
    Entry("completion", "Help", "SHELL", "completion of command lines in bash, zsh and fish"),
)


# click 8.1 shows the help by itself.
_NO_ARGUMENTS: tuple[type[click.ClickException], ...] = tuple(
    error for error in (getattr(click.exceptions, "NoArgsIsHelpError", None),) if error is not None
)


class _Group(click.Group):
    """Imports a command when it is asked for. Ends with status 130 on Ctrl-C, and with one line and status 2 for
    whatever cannot be done."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        del ctx
        return [entry.name for entry in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        del ctx
        if not any(entry.name == cmd_name for entry in COMMANDS):
            return None
        command: click.Command = getattr(importlib.import_module(f"trainmon.commands.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The map: what there is for which purpose, from the table alone."""
        del ctx
        width = max(len(f"{entry.name} {entry.takes}") for entry in COMMANDS)
        for group in dict.fromkeys(entry.group for entry in COMMANDS):
            with formatter.section(group):
                rows = [(f"{e.name} {e.takes}".ljust(width), e.help) for e in COMMANDS if e.group == group]
                formatter.write_dl(rows, col_max=width + 2)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """The context; a reader of the help that has gone is no trouble."""
        with _gone_readers_are_fine():
            return super().make_context(*args, **{"terminal_width": _help_width(), **kwargs})

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command, likewise."""
        with _gone_readers_are_fine():
            return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:
        """Runs the command."""
        _tolerate_odd_streams()
        words = list(sys.argv[1:] if args is None else args)
        if args is None and not sys.warnoptions:
            warnings.simplefilter("ignore", RuntimeWarning)  # numbers that overflow are judged, not told on stderr
        try:
            return super().main(args, *rest, **{**kwargs, "standalone_mode": False})
        except click.exceptions.Exit as leave:
            sys.exit(leave.exit_code)
        except _NO_ARGUMENTS as usage:
            usage.show()
            sys.exit(2)
        except click.ClickException as usage:
            _end(usage, words)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)
        except OSError as error:
            _end(Trouble(f"{error.filename or 'standard output'}: {error.strerror or error}"), words)
        except (MemoryError, SystemError):  # SystemError: C code that was refused memory and did not say so
            _end(Trouble("out of memory; give it more (ulimit -v, the limit of the job) or name fewer logs"), words)
        except ImportError as error:
            why = (str(error).strip().splitlines() or ["no reason given"])[-1]
            advice = "install it anew, or give it more memory (ulimit -v, the limit of the job)"
            _end(Trouble(f"a part of it cannot be loaded ({why}); {advice}"), words)
        except Exception as error:  # the top of the program: nothing is a traceback, and 1 would mean a FAIL
            _end(Trouble(f"internal error, please report it: {type(error).__name__}: {error}"), words)


@contextlib.contextmanager
def _gone_readers_are_fine() -> Iterator[None]:
    """Status 0 when the reader of standard output has gone: click would make it 1, which means a FAIL."""
    try:
        yield
    except BrokenPipeError:
        stop_printing()
        raise click.exceptions.Exit(0) from None


def _end(trouble: click.ClickException, words: Sequence[str]) -> NoReturn:
    """Says what is the matter, on stderr, and in a document where one was asked for."""
    with contextlib.suppress(OSError):  # where stderr is full too, the status says it: Python's own would mean a FAIL
        trouble.show()
        if isinstance(trouble, click.NoSuchOption) and any(map(_is_file, words)):
            click.echo("A name that begins with a dash is written ./-NAME, or after --.", err=True)
    with contextlib.suppress(OSError):  # standard output may be what the trouble is about
        _document_of_failure(getattr(trouble, "problems", (trouble.format_message(),)), words)
    sys.exit(trouble.exit_code)


def _help_width() -> int:
    """As click would find it, which loads `shutil` for it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(min(int(columns), 80) - 2, 50)
    try:
        return max(min(os.get_terminal_size(sys.__stdout__.fileno()).columns or 80, 80) - 2, 50)  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 78


def _is_file(option: str) -> bool:
    """Whether what looks like an option is the name of a file."""
    from pathlib import Path  # for those who made a mistake

    return option[:1] == "-" and Path(option).exists()


def _tolerate_odd_streams() -> None:
    """Closed streams become /dev/null; what a stream's encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives as long as we
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _document_of_failure(problems: Sequence[str], words: Sequence[str]) -> None:
    """``--json`` always prints a document, also when the command line is wrong."""
    options = list(itertools.takewhile(lambda word: word != "--", words))
    if "--json" not in options and "--format=json" not in options and ("--format", "json") not in pairwise(options):
        return
    from trainmon.monitor.document import check_document, dumps

    entry = next((each for each in COMMANDS if each.name in words[:1]), None)
    if entry is None or entry.name == "check" or not entry.schema:
        echo(dumps(check_document((), 2, problems)))
        return
    nothing: object = None if entry.holds == "run" else []
    echo(dumps({"schema": entry.schema, "version": version(), entry.holds: nothing, "problems": list(problems)}))


_MORE = """\b
Exit status: 0 done, nothing FAILs; 1 a FAIL (check, preflight, watch
--headless); 2 wrong usage, or nothing could be done; 130 interrupted.

\b
Files: trainmon.toml           beside or above a log: thresholds and facts
       ~/.config/trainmon      yours: config.toml, keys and alerts
       ~/.local/share/trainmon history and the log book
       ~/.local/state/trainmon pins and acknowledgements
       ~/.cache/trainmon       large logs as they were read

\b
Environment: NO_COLOR=1; TRAINMON_CACHE=off; TRAINMON_HISTORY=off;
TRAINMON_ASCII=1; TRAINMON_LOW_BANDWIDTH=1; TRAINMON_THEME=dark|light|auto"""


@click.group(cls=_Group, epilog=_MORE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version(), message=version_line())
def main() -> None:
    """See which training run is in trouble, what kind, since which step, and what to do.

    A TARGET is a file, a directory, a glob in quotes, host:PATH over SSH, slurm:JOBID, or - for standard input.
    trainmon only reads: it never touches a job, its code or its files. `trainmon COMMAND --help` tells of one command.
    """
