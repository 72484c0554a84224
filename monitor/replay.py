"""``trainmon replay``: a finished log written anew, record after record, as if its run were live."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from trainmon import version
from trainmon.monitor.check import of_one_look
from trainmon.tails.clock import Clock
from trainmon.tails.discover import STDIN, RunFiles
from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.ingest import HEAD_BYTES
from trainmon.tails.intake import read_all
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Block, FloatArray, IntArray

DEFAULT_STEP_S = 1.0  # between two records of a log without times
LONGEST_GAP_S = 60.0  # a downtime in the log is waited for at most so long, before the speed is applied
_COPY_BYTES = 1 << 20
_WRITES_PER_S = 50.0  # finer than a screen shows


class ReplayError(ValueError):
    """A run that cannot be replayed; the message says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the plan, `size` bytes long. `offsets` (n,): the byte at which record i begins; `due` (n,): seconds
    after the start at which it must have been written."""

    source: Path
    target: Path
    offsets: IntArray
    due: FloatArray
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What is written when, at speed 1. `lasts_s` is the whole; `is_timed` whether the log's own times pace it."""

    parts: tuple[Part, ...]
    lasts_s: float
    is_timed: bool


def document(run: str, made: Plan, speed: float) -> dict[str, object]:
    """``trainmon.replay/1``: what was written, from which file, and how long it took at `speed`."""
    return {
        "schema": "trainmon.replay/1",
        "version": version(),
        "run": run,
        "files": [
            {"path": str(part.target), "source": str(part.source), "records": len(part.offsets)} for part in made.parts
        ],
        "lasts_s": made.lasts_s / speed,
        "is_timed": made.is_timed,
        "problems": [],
    }


@dataclass(slots=True)
class _Seen:
    offsets: list[IntArray]
    steps: list[FloatArray]
    times: list[FloatArray]


def plan(run: RunFiles, folder: Path, clock: Clock, *, from_step: float | None = None) -> Plan:
    """Reads `run` once and lays out its replay into `folder`. What comes before `from_step` is there from the start.

    Raises ReplayError for a run without records, or whose files cannot be read a piece at a time.
    """
    files = [file.path for file in run.files if file.role != "config"]
    if STDIN in files:
        raise ReplayError("-: standard input cannot be replayed; name a file")
    seen: dict[str, _Seen] = {}
    problems: list[str] = []
    for item in read_all(run, clock):
        problems += [item.status.problem] if item.status.problem else []
        for block in item.update.parsed.blocks:
            _add(seen, item.path, block)
    for path in seen:
        if _is_document(Path(path)):
            raise ReplayError(f"{path}: such a file is rewritten whole, so it cannot be played record by record")
    known = {path: each for path, each in seen.items() if each.offsets}
    if not known:
        raise ReplayError(of_one_look(problems[0]) if problems else f"{run.name}: no records to replay")
    joined = {path: _joined(each) for path, each in known.items()}
    if any((offsets[1:] < offsets[:-1]).any() for offsets, _, _ in joined.values()):
        raise ReplayError(f"{run.name}: a document that is rewritten whole cannot be replayed piece by piece")
    is_timed = all(np.isfinite(times).mean() > 0.5 for _, _, times in joined.values())
    at = _timed(joined) if is_timed else _by_step(joined)
    start = _start(joined, at, from_step)
    common = _common(files)
    parts = []
    for file in files:
        offsets = joined[str(file)][0] if str(file) in joined else np.zeros(0, np.int64)
        due = np.maximum(at[str(file)] - start, 0.0) if str(file) in at else np.zeros(0)
        size = file.stat().st_size if file.exists() else 0
        parts.append(Part(file, folder / file.relative_to(common), offsets, due, size))
    for file in (file.path for file in run.files if file.role == "config"):
        parts.append(Part(file, folder / _below(file, common), np.zeros(0, np.int64), np.zeros(0), file.stat().st_size))
    return Plan(tuple(parts), max(float(part.due[-1]) for part in parts if part.due.size), is_timed)


def _add(seen: dict[str, _Seen], path: str, block: Block) -> None:
    if len(block):
        mine = seen.setdefault(path, _Seen([], [], []))
        mine.offsets.append(block.offsets)
        mine.steps.append(block.steps)
        mine.times.append(block.times)


def _is_document(path: Path) -> bool:
    with path.open("rb") as file:
        return isinstance(registry.detect(file.read(HEAD_BYTES), str(path)), DocumentFormat)


Columns = dict[str, tuple[IntArray, FloatArray, FloatArray]]


def _joined(seen: _Seen) -> tuple[IntArray, FloatArray, FloatArray]:
    return np.concatenate(seen.offsets), np.concatenate(seen.steps), np.concatenate(seen.times)


def _timed(joined: Columns) -> dict[str, FloatArray]:
    """Seconds of each record by the log's times: unknown ones as the record before, long gaps shortened for all."""
    filled = {path: _filled(times) for path, (_, _, times) in joined.items()}
    moments = np.unique(np.concatenate(list(filled.values())))
    gaps = np.minimum(np.diff(moments, prepend=moments[0]), LONGEST_GAP_S)
    elapsed = np.cumsum(gaps)
    return {path: elapsed[np.searchsorted(moments, times)] for path, times in filled.items()}


def _filled(times: FloatArray) -> FloatArray:
    """Never going back: a clock that is set back stands still meanwhile."""
    known = np.flatnonzero(np.isfinite(times))
    carried = times[known[np.maximum(np.searchsorted(known, np.arange(times.size), "right") - 1, 0)]]
    return np.maximum.accumulate(carried)


def _by_step(joined: Columns) -> dict[str, FloatArray]:
    """Seconds of each record by its place: one a second in the file that has most; the others at the same share."""
    most = max(offsets.size for offsets, _, _ in joined.values())
    return {
        path: np.arange(offsets.size, dtype=np.float64) * (DEFAULT_STEP_S * most / max(offsets.size, 1))
        for path, (offsets, _, _) in joined.items()
    }


def _start(joined: Columns, at: dict[str, FloatArray], from_step: float | None) -> float:
    if from_step is None:
        return 0.0
    hits = {path: np.flatnonzero(steps >= from_step) for path, (_, steps, _) in joined.items()}
    firsts = [float(at[path][hit[0]]) for path, hit in hits.items() if hit.size]
    if not firsts:
        last = max(float(np.nanmax(steps, initial=-np.inf)) for _, steps, _ in joined.values())
        raise ReplayError(f"--from {from_step:.15g}: the last step is {last:.15g}")
    return min(firsts)


def _common(files: list[Path]) -> Path:
    common = files[0].parent
    while not all(file.is_relative_to(common) for file in files):
        common = common.parent
    return common


def _below(file: Path, common: Path) -> Path:
    return file.relative_to(common) if file.is_relative_to(common) else Path(file.name)


def play(plan: Plan, speed: float, clock: Clock, stop: threading.Event, on_error: Callable[[str], None]) -> None:
    """Writes the files until all is written or `stop` is set. `speed`: how many times as fast as the log.

    A file that cannot be read or written ends the replay with one line to `on_error`.
    """
    try:
        _play(plan, speed, clock, stop)
    except OSError as error:
        on_error(f"{error.filename or 'replay'}: {error.strerror or error}; the replay ended there")


def _play(plan: Plan, speed: float, clock: Clock, stop: threading.Event) -> None:
    written = dict.fromkeys(range(len(plan.parts)), 0)
    for number, part in enumerate(plan.parts):
        part.target.parent.mkdir(parents=True, exist_ok=True)
        part.target.touch()
        if not part.due.size:
            _copy(part, 0, part.size, stop)
            written[number] = part.size
    began = clock.monotonic()
    for due, number, upto in _events(plan, grain_s=speed / _WRITES_PER_S):
        while (wait := due / speed - (clock.monotonic() - began)) > 0:
            if stop.is_set():
                return
            clock.sleep(min(wait, 0.2))
        if stop.is_set():
            return
        _copy(plan.parts[number], written[number], upto, stop)
        written[number] = upto


def _events(plan: Plan, grain_s: float) -> Iterator[tuple[float, int, int]]:
    """(seconds at speed 1, part, byte to reach), in order of time; records of the same grain are written together."""

    def of(number: int, part: Part) -> Iterator[tuple[float, int, int]]:
        ends = np.append(part.offsets[1:], part.size)
        slots = np.floor(part.due / grain_s)
        last_of_slot = np.flatnonzero(np.append(slots[1:] != slots[:-1], True))
        for index in last_of_slot.tolist():
            yield float(part.due[index]), number, int(ends[index])

    return heapq.merge(*(of(number, part) for number, part in enumerate(plan.parts) if part.due.size))


def _copy(part: Part, begin: int, end: int, stop: threading.Event) -> None:
    with part.source.open("rb") as source, part.target.open("ab") as target:
        source.seek(begin)
        left = end - begin
        while left > 0 and not stop.is_set():
            data = source.read(min(left, _COPY_BYTES))
            if not data:
                return
            target.write(data)
            target.flush()
            left -= len(data)
