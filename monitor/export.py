"""``trainmon export``: the values that were read, so that anyone can compare them with the log."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from trainmon.monitor.check import why_nothing
from trainmon.monitor.document import dumps
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.export_axis import Along, Row, Sink, columns_of, why_unknown
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.inventory import key_of
from trainmon.monitor.judge import find, read_runs
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import SystemClock
from trainmon.tails.record import Mark
from trainmon.tails.text import printable

if TYPE_CHECKING:
    from trainmon.monitor.alignment import Axis
    from trainmon.monitor.snapshot import RunSnapshot
    from trainmon.tails.discover import Discovery


def number(value: float | None) -> str:
    """The shortest form that reads back the same; "" for a value that was not logged.

    >>> number(3.0), number(0.1), number(1e-05), number(float("nan")), number(None)
    ('3', '0.1', '1e-05', 'nan', '')
    """
    if value is None:
        return ""
    if math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
        return str(int(value)) if value or math.copysign(1.0, value) > 0 else "-0"
    return repr(value)


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
) -> int:
    """Writes the rows of all runs of `targets`; returns the exit status. Words about it go to stderr.

    `axis`: with a column of what each row's step amounts to (`export_axis`); rows then come at each run's end.
    """
    discovery = find(targets, cwd)
    for problem in discovery.problems:
        print(f"trainmon: {printable(problem)}", file=sys.stderr)
    try:
        keys = [SignalKey(name) if raw_keys else key_of(name) for name in signals]
    except ValueError as error:
        print(f"trainmon: --signal {printable(str(error))}", file=sys.stderr)
        return 2
    if not signals:
        axis = None  # a list of names has no rows
    written: set[str] = set()
    seen: dict[str, set[str]] = {}
    with _writer([*columns_of(axis), *signals], form, output) as write:
        along = Along(axis, write, _scaled(discovery, raw_keys, axis))

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
        print(f"trainmon: {printable(name)}: {why_unknown(axis)}; the column is empty", file=sys.stderr)
    failed = bool(discovery.problems) or (bool(written) and written == set(along.unknown))
    if not signals:
        return _list(runs, seen, failed=failed)
    return _close(runs, written, seen, signals, failed=failed)


def _scaled(discovery: Discovery, raw_keys: bool, axis: Axis | None) -> dict[str, RunSnapshot]:
    """The runs with units as signals have them: raw keys are read without, so that their axis is read for itself."""
    if not raw_keys or not columns_of(axis):
        return {}
    every = read_runs(discovery, clock=SystemClock(), limits=Thresholds())
    return {run.name: run for run in (watched.snapshot(live=False) for _, watched in every)}


def _list(runs: Sequence[RunSnapshot], seen: dict[str, set[str]], *, failed: bool) -> int:
    for name, found in seen.items():
        for key in sorted(found):
            print(f"{printable(name)}\t{printable(key)}")
    for run in runs:
        if not seen.get(run.name):
            print(f"trainmon: {printable(why_nothing(run))}", file=sys.stderr)
    return 0 if any(seen.values()) and not failed else 2


def _close(
    runs: Sequence[RunSnapshot], written: set[str], seen: dict[str, set[str]], signals: list[str], *, failed: bool
) -> int:
    for run in runs:
        if run.name not in written:
            found = ", ".join(sorted(seen.get(run.name, ()))[:30]) or "no metrics"
            why = f"it has: {found}" if seen.get(run.name) else why_nothing(run)
            wanted = printable(" or ".join(signals))
            print(f"trainmon: {printable(run.name)}: no {wanted} ({printable(why)})", file=sys.stderr)
    every = set().union(*seen.values()) if seen else set()
    for name in signals:
        if written and name not in every:
            print(f"trainmon: no run has {printable(name)}: its column is empty", file=sys.stderr)
    return 0 if written and not failed else 2


@contextmanager
def _writer(signals: list[str], form: str, output: Path | None) -> Iterator[Sink]:
    if form == "parquet":
        with _parquet(signals, output) as sink:
            yield sink
        return
    if output is None:
        yield _text_sink(sys.stdout, signals, form)
        sys.stdout.flush()
        return
    with output.open("w", encoding="utf-8", newline="") as file:
        yield _text_sink(file, signals, form)


def _text_sink(file: IO[str], signals: list[str], form: str) -> Sink:
    if form == "jsonl":

        def jsonl(run: str, row: Row) -> None:
            attempt, step, values = row
            named = {name: value for name, value in zip(signals, values, strict=True) if value is not None}
            file.write(dumps({"run": run, "attempt": attempt, "step": step, **named}) + "\n")

        return jsonl
    table = csv.writer(file, lineterminator="\n")
    if signals:
        table.writerow(["run", "attempt", "step", *signals])

    def line(run: str, row: Row) -> None:
        attempt, step, values = row
        table.writerow([run, attempt, number(step), *map(number, values)])

    return line


@contextmanager
def _parquet(signals: list[str], output: Path | None) -> Iterator[Sink]:
    if output is None:
        raise SystemExit(_complain("--format parquet is binary: name a file with --output"))
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise SystemExit(_complain("--format parquet needs: pip install 'trainmon[parquet]'")) from None
    columns: dict[str, list[object]] = {name: [] for name in ("run", "attempt", "step", *signals)}

    def add(run: str, row: Row) -> None:
        attempt, step, values = row
        for name, value in zip(columns, (run, attempt, step, *values), strict=True):
            columns[name].append(value)

    yield add
    parquet.write_table(pa.table(columns), output)


def _complain(message: str) -> int:
    print(f"trainmon: {message}", file=sys.stderr)
    return 2
