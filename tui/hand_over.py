"""A report of a run as a file, asked for from the screens: where one works, else where the user's state is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.here import here
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.own_files import own_folder
from trainmon.tails.text import printable

_UNSAFE = lazy(r"[^A-Za-z0-9._]+")


def report_name(run: str, made_at: float) -> str:
    """A file name that sorts by time and is safe in any shell.

    >>> report_name("../llama 7b; rm -rf", 0.0)
    'trainmon-llama-7b-rm-rf-19700101-000000.md'
    """
    stem = _UNSAFE.sub("-", run).strip("-.")[-60:].strip("-.") or "run"
    return f"trainmon-{stem}-{datetime.fromtimestamp(made_at, UTC):%Y%m%d-%H%M%S}.md"


def write_report(run: RunSnapshot, made_at: float, folders: tuple[Path, ...] | None = None) -> str:
    """Writes it into the first of `folders` that takes it; says where, or why not. Blocks: not for the screen's thread.

    `folders`: the current directory and the user's state directory where not given.
    """
    from trainmon.monitor.logbook import Logbook
    from trainmon.monitor.report import content as report

    if folders is None:
        folders = (here(), own_folder("state") / "reports")
    remarks, problems = Logbook().read(file.path for file in run.files)
    made = report.build(run, made_at=made_at, remarks=remarks, problems=problems)
    why = ""
    for folder in folders:
        path = folder / report_name(run.name, made_at)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            report.write(made, path)
        except OSError as error:
            why = why or f"{folder}: {error.strerror or error}"
            continue
        return printable(f"report written to {path}", 500)
    return printable(f"no report was written: {why}", 500)
