"""What was judged of a finished reading, kept for the next time: an unchanged log is neither read nor judged again.

An entry belongs to one state of all files of a run (`parsed_cache.Identity`: place, size, time, samples of the bytes),
to the thresholds and settings, and to the code that reads and judges. What time tells (silence, ages, the scheduler's
word) is not kept but worked out anew, from the answers that the engine gave. Arrays are raw numbers, all else is
MessagePack read with types: nothing in an entry can be run. Anything odd about one means that there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
from numpy.typing import NDArray

from trainmon.monitor.answers import AnsweringEngine, Answers
from trainmon.monitor.assemble import assemble
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.state import Pulse
from trainmon.monitor.snapshot import JobInfo, RunSnapshot, SeriesView
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails import cache_folder
from trainmon.tails.clock import Clock
from trainmon.tails.discover import STDIN, RunFiles
from trainmon.tails.intake import is_one_large_file
from trainmon.tails.packing import Described, pack, unpack
from trainmon.tails.parsed_cache import Identity
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.status import FileStatus, LogLine

_KIND: Final = "judged"
_SUFFIX: Final = ".judged"
_ARRAYS: Final = ("steps", "values", "low", "high", "attempts", "bad_steps", "times")


class _Series(msgspec.Struct, array_like=True):
    """One `SeriesView`; its arrays by their numbers in `_Entry.arrays`, -1 for None."""

    key: SignalKey
    unit: str
    count: int
    last: float
    raw_key: str
    derived: str
    arrays: list[int]


class _Entry(msgspec.Struct, array_like=True):
    """The index of an entry."""

    state: str
    answers: Answers
    series: list[_Series]
    arrays: list[Described]
    files: list[FileStatus]
    lines: list[LogLine]
    pulse: Pulse
    problems: list[str]
    progress: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A run that was read to its end: what its engine answers and what else a snapshot needs. `pulse` has no age."""

    engine: RunEngine
    files: Sequence[FileStatus]
    lines: Sequence[LogLine]
    pulse: Pulse
    problems: Sequence[str]
    progress: float

    def snapshot(self, clock: Clock, jobs: Sequence[JobInfo], *, with_scores: bool) -> RunSnapshot:
        """As seen now."""
        now = clock.wall()
        ages = [file.newest_age_s for file in self.files if file.newest_age_s is not None]
        return assemble(
            self.engine,
            self.files,
            self.lines,
            replace(self.pulse, age_s=min(ages, default=None)),
            live=False,
            progress=self.progress,
            problems=self.problems,
            revision=1,
            with_scores=with_scores,
            jobs=jobs,
            now=now,
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where the judgement of one run in one state is kept. `mtimes`: path -> seconds since the epoch."""

    name: str
    state: str
    mtimes: Mapping[str, float]

    @classmethod
    def of(cls, run: RunFiles, limits: Thresholds, clock: Clock, *also: object) -> Place | None:
        """None for runs that are not kept: small, rotated, on another host, of stdin. `also`: what else counts."""
        logs = [file for file in run.files if file.role != "config"]
        is_kept = cache_folder.is_on() and all(file.remote is None and file.path != STDIN for file in run.files)
        if not is_kept or not logs or not all(is_one_large_file(file.path, clock) for file in logs):
            return None
        found = {file: Identity.of(file.path) for file in run.files}
        if None in found.values():
            return None
        known = {file: identity for file, identity in found.items() if identity is not None}
        told = [(str(file.path), file.role, file.attempt, identity.state) for file, identity in known.items()]
        owners = [os.stat(file.path).st_uid for file in run.files]  # noqa: PTH116 - settings are shown with their owner
        state = repr((told, owners, run.name, run.target, sorted(limits.values.items()), limits.sources, also, _code()))
        name = hashlib.blake2b(repr([identity.name for identity in known.values()]).encode(), digest_size=16)
        mtimes = {str(file.path): identity.mtime for file, identity in known.items()}
        return cls(
            name.hexdigest() + _SUFFIX, hashlib.blake2b(state.encode("utf-8", "surrogateescape")).hexdigest(), mtimes
        )


@cache
def _code() -> str:
    """What judges: the modules of `monitor` as they lie on the disk."""
    here = Path(__file__).parent
    places = [here, *(here / place.name for place in os.scandir(here) if place.is_dir())]
    modules = [(entry.path, entry.stat()) for place in places for entry in os.scandir(place)]
    told = sorted(
        (path, found.st_size, found.st_mtime_ns) for path, found in modules if path.endswith((".py", ".toml"))
    )
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def clear() -> int:
    """Removes every entry; how many there were."""
    return cache_folder.clear(_KIND, _SUFFIX)


def through(
    run: RunFiles,
    limits: Thresholds,
    clock: Clock,
    read: Callable[[], WatchedRun],
    jobs: Sequence[JobInfo],
    *,
    room: int,
    with_scores: bool,
) -> RunSnapshot:
    """The snapshot of `run`: from the judgement that is kept, else of what `read` gives, kept for later.

    `room`: bytes for its series; `jobs`: what a scheduler says of it now.
    """
    place = Place.of(run, limits, clock, room, with_scores)
    kept = find(place, clock) if place is not None else None
    if kept is not None:
        return kept.snapshot(clock, jobs, with_scores=with_scores)
    watched = read()
    is_kept = place is not None and not watched.failure and not watched.others
    if place is not None and is_kept and Place.of(run, limits, clock, room, with_scores) == place:
        pulse = replace(watched.pulse(), age_s=None)
        files, lines = tuple(watched.files.values()), watched.log_tail
        judged = Judged(watched.engine, files, lines, pulse, watched.told_problems(), watched.progress)
        keep(place, judged, clock, with_scores=with_scores)
    return watched.whole(jobs, with_scores=with_scores)


def find(place: Place, clock: Clock) -> Judged | None:
    """The judgement that is kept for this state; None where there is none."""

    def wanted(told: bytes) -> tuple[_Entry, int] | None:
        entry = msgspec.msgpack.decode(told, type=_Entry)
        return (entry, len(told)) if entry.state == place.state else None

    try:
        found = cache_folder.opened(cache_folder.folder(_KIND) / place.name, wanted)
        if found is None:
            return None
        file, (entry, index_size) = found
        with file:
            data = os.pread(file.fileno(), os.fstat(file.fileno()).st_size - index_size, 0)
            judged = _judged(entry, data, place, clock)
            with contextlib.suppress(OSError):  # a folder that cannot be written
                os.utime(file.fileno())
    except (OSError, ValueError, KeyError, IndexError, msgspec.MsgspecError):
        return None
    return judged


def keep(place: Place, judged: Judged, clock: Clock, *, with_scores: bool) -> None:
    """Keeps a judgement; anything that goes wrong means that it is not kept."""
    try:
        draft = cache_folder.Draft(_KIND)
    except OSError:
        return
    try:
        arrays = _Arrays(draft.size)
        series = [
            _Series(
                key,
                view.unit,
                view.count,
                view.last,
                view.raw_key,
                view.derived,
                [arrays.add(getattr(view, name)) for name in _ARRAYS],
            )
            for key, view in judged.engine.series_views(with_scores=with_scores).items()
        ]
        entry = _Entry(
            place.state,
            Answers.of(judged.engine),
            series,
            arrays.told,
            list(judged.files),
            list(judged.lines),
            judged.pulse,
            list(judged.problems),
            judged.progress,
        )
        if len(arrays.data) <= cache_folder.most_bytes():
            draft.write(arrays.data)
            draft.keep(place.name, msgspec.msgpack.encode(entry), clock.wall())
    except (OSError, ValueError, TypeError, msgspec.MsgspecError):
        pass
    finally:
        draft.drop()


class _Arrays:
    """Arrays on their way into an entry, those that several series share once. The entry's first bytes are no array."""

    def __init__(self, offset: int) -> None:
        self.data = bytearray()
        self.told: list[Described] = []
        self._offset = offset
        self._known: dict[object, int] = {}
        self._alive: list[NDArray[Any]] = []  # an address names an array only while that is there

    def add(self, array: NDArray[Any] | None) -> int:
        """The number of `array`, -1 for None."""
        if array is None:
            return -1
        where = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)
        if where not in self._known:
            self._alive.append(array)
            self._known[where] = len(self.told)
            self.told.append(pack(array, self.data))
        return self._known[where]


def _judged(entry: _Entry, data: bytes, place: Place, clock: Clock) -> Judged:
    body = data[len(cache_folder.MAGIC) :]
    arrays: list[NDArray[Any]] = [_read_only(unpack(told, body)) for told in entry.arrays]
    series = {}
    for one in entry.series:
        parts: dict[str, Any] = {
            name: None if at < 0 else arrays[at] for name, at in zip(_ARRAYS, one.arrays, strict=True)
        }
        told: dict[str, Any] = {name: getattr(one, name) for name in ("unit", "count", "last", "raw_key", "derived")}
        series[one.key] = SeriesView(one.key, **told, **parts)
    now = clock.wall()
    files = [
        replace(file, newest_age_s=max(now - place.mtimes[file.path], 0.0)) if file.newest_age_s is not None else file
        for file in entry.files
    ]
    engine = AnsweringEngine(entry.answers, series, clock)
    return Judged(engine, files, entry.lines, entry.pulse, entry.problems, entry.progress)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    with contextlib.suppress(ValueError):
        array.flags.writeable = False
    return array
