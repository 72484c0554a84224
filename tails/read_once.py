"""A run read to its end, once, in the calling thread; what was read of a large log before is not read again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.config_file import ConfigFile
from trainmon.tails.discover import STDIN, RunFile, RunFiles
from trainmon.tails.formats import registry
from trainmon.tails.ingest import Detect
from trainmon.tails.parts import older_parts
from trainmon.tails.reader import BUDGET_BYTES, IntakeItem, Source, failed, joined
from trainmon.tails.record import Parsed
from trainmon.tails.stdin_items import stdin_items
from trainmon.tails.stdin_source import StdinTail
from trainmon.tails.tail import Tail, TailUpdate
from trainmon.tails.unpack import packing_of

_LARGE_BYTES = 4 << 20


def read_all(
    run: RunFiles, clock: Clock, *, detect: Detect = registry.detect, stdin_fd: int = 0
) -> Iterator[IntakeItem]:
    """Reads each file of `run` to its end, in the calling thread; settings come first, the last item of each file
    is `is_ended`. Files that cannot be read give one item whose status says so."""
    for file in sorted(run.files, key=lambda file: file.role != "config"):
        if file.path == STDIN:
            yield from stdin_items(run.name, StdinTail(stdin_fd, clock=clock, detect=detect), threading.Event())
            continue
        source = Source(run.name, file.path, file.role, open_source(file, clock, detect, must_reopen=False))
        try:
            yield from _kept(source, clock) if detect is registry.detect else _whole(source)
        except Exception as error:  # the top of this worker: one file that fails must not hide the others
            yield failed(source, error)


def _kept(source: Source, clock: Clock) -> Iterator[IntakeItem]:
    """As `_whole`; a large log is read once only, while it stays as it is."""
    if type(source.tail) is not Tail or not is_one_large_file(source.path, clock):
        yield from _whole(source)
        return
    from trainmon.tails import parsed_cache

    yield from parsed_cache.through(source.path, source.run_name, source.role, clock.wall, lambda: _whole(source))


def is_one_large_file(path: Path, clock: Clock) -> bool:
    """Whether reading takes long enough to keep what was read; not so for a log with parts that were rotated away."""
    try:
        return path.stat().st_size >= _LARGE_BYTES and not older_parts(path, clock.wall())
    except OSError:
        return False


def _whole(source: Source) -> Iterator[IntakeItem]:
    tail, name, path, role = source.tail, source.run_name, source.label, source.role
    if isinstance(tail, ConfigFile):
        content = tail.poll()
        yield IntakeItem(name, path, TailUpdate(Parsed()), tail.status(), role, content, is_ended=True)
        return
    more = True
    while more:
        update = tail.poll(BUDGET_BYTES)
        more = update.more
        if not more:
            update = joined(update, tail.finish())
        yield IntakeItem(name, path, update, tail.status(), role, is_ended=not more)
    tail.release()


def open_source(file: RunFile, clock: Clock, detect: Detect, *, must_reopen: bool) -> Tail | ConfigFile:
    """What reads `file`. `must_reopen`: it lies on a network file system (see `Follower`)."""
    if file.remote is not None:
        from trainmon.tails.ssh.tail import open_once

        return open_once(file.remote, file.role, clock, detect)
    if file.role == "config":
        return ConfigFile(file.path)
    if packing_of(file.path.name):
        from trainmon.tails.packed import PackedTail  # for those who have such files

        return PackedTail(file.path, clock=clock, detect=detect)
    if file.is_series:
        from trainmon.tails.series_tail import SeriesTail  # for those who have such files

        return SeriesTail(file.path, clock=clock)
    return Tail(file.path, clock=clock, detect=detect, must_reopen=must_reopen)
