"""``trainmon export``: the values that were read, so that anyone can compare them with the log."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.monitor.check import why_nothing
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.export.axis import Along, Row, columns_of, why_unknown
from trainmon.monitor.export.forms import ExportError, Told, opened
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.inventory import key_of
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import Mark
from trainmon.tails.text import printable

if TYPE_CHECKING:
    from trainmon.monitor.compare.alignment import Axis
    from trainmon.monitor.snapshot import RunSnapshot
    from trainmon.tails.discover import Discovery


def rows_of(frame: Frame, keys: Sequence[SignalKey]) -> Iterator[Row]:
    """The rows of `frame` on which one of `keys` was logged (a logged null counts as not written)."""
    columns = [frame.columns.get(key) for key in keys]
    marks = [None if column is None else frame.marks.get(key) for key, column in zip(keys, columns, strict=True)]
    for index, step in enumerate(frame.steps.tolist()):
        values: list[float | None] = []
        for column, mark in zip(columns, marks, strict=True):
            value = None if column is None else float(column[index])
            logged = value is not None and (
                not math.isnan(value) if mark is None else mark[index] not in (Mark.ABSENT, Mark.NULL)
            )
            values.append(value if logged else None)
        if any(value is not None for value in values):
            yield frame.attempt, step, values


def export_to(
    targets: list[str],
    signals: list[str],
    *,
    cwd: Path,
    raw_keys: bool,
    form: str,
    output: Path | None,
    axis: Axis | None = None,
    quiet: bool = False,
) -> int:
    """Writes the rows of all runs of `targets`; returns the exit status. Words about it go to stderr.

    Without `signals`, the names that the runs have are written. `axis`: with a column of what each row's step amounts
    to (`export_axis`); rows then come at each run's end. `quiet`: columns that stay empty are not told of. Raises
    ExportError for what cannot be asked, OSError where `output` cannot be written.
    """
    try:
        keys = [SignalKey(name) if raw_keys else key_of(name) for name in signals]
    except ValueError as error:
        raise ExportError(f"--signal {error}") from None
    if not signals:
        axis = None  # a list of names has no rows
    discovery = find(targets, cwd)
    told = _Words(quiet)
    for problem in discovery.problems:
        told.problem(printable(problem))
    written: set[str] = set()
    seen: dict[str, set[str]] = {}
    with opened([*columns_of(axis), *signals], form, output, told) as out:
        along = Along(axis, out.row, _scaled(discovery, raw_keys, axis))

        def attach(engine: RunEngine) -> None:
            names = seen.setdefault(engine.name, set())

            def take(frame: Frame) -> None:
                names.update(map(str, frame.columns))
                for row in rows_of(frame, keys):
                    written.add(engine.name)
                    along.take(engine.name, row)

            engine.raw_keys_only = raw_keys
            engine.on_frame = take

        runs = []
        for _, watched in read_runs(discovery, clock=SystemClock(), limits=Thresholds(), on_engine=attach):
            runs.append(watched.snapshot(live=False))
            along.close(runs[-1])
        for name in along.unknown:
            told.remark(f"{printable(name)}: {why_unknown(axis)}; the column is empty")
        failed = bool(discovery.problems) or (bool(written) and written == set(along.unknown))
        if not signals:
            for name, found in seen.items():
                for key in sorted(found):
                    out.name(name, key)
            _say_nothing_in([run for run in runs if not seen.get(run.name)], told)
            return 0 if any(seen.values()) and not failed else 2
        _say_missing(runs, written, seen, signals, told)
        return 0 if written and not failed else 2


class _Words(Told):
    """What is said on stderr: problems always, remarks unless it is to be quiet."""

    def __init__(self, quiet: bool) -> None:
        super().__init__()
        self._quiet = quiet

    def problem(self, text: str) -> None:
        """Says it once, and keeps it for a document."""
        if text not in self.problems:
            self.problems.append(text)
            print(f"trainmon: {text}", file=sys.stderr)

    def remark(self, text: str) -> None:
        """Says it unless it is to be quiet."""
        if not self._quiet:
            self.problem(text)


def _scaled(discovery: Discovery, raw_keys: bool, axis: Axis | None) -> dict[str, RunSnapshot]:
    """The runs with units as signals have them: raw keys are read without, so that their axis is read for itself."""
    if not raw_keys or not columns_of(axis):
        return {}
    every = read_runs(discovery, clock=SystemClock(), limits=Thresholds())
    return {run.name: run for run in (watched.snapshot(live=False) for _, watched in every)}


def _say_nothing_in(runs: Sequence[RunSnapshot], told: _Words) -> None:
    for run in runs:
        told.problem(printable(why_nothing(run)))


def _say_missing(
    runs: Sequence[RunSnapshot], written: set[str], seen: dict[str, set[str]], signals: list[str], told: _Words
) -> None:
    """What was asked for and is not there: of a run, or of all."""
    for run in runs:
        if run.name not in written:
            found = ", ".join(sorted(seen.get(run.name, ()))[:30]) or "no metrics"
            why = f"it has: {found}" if seen.get(run.name) else why_nothing(run)
            wanted = printable(" or ".join(signals))
            told.problem(f"{printable(run.name)}: no {wanted} ({printable(why)})")
    every = set().union(*seen.values()) if seen else set()
    for name in signals:
        if written and name not in every:
            told.remark(f"no run has {printable(name)}: its column is empty")
