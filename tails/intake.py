"""Everything that is read, as one stream: reader threads (one a mount), a scanner for new runs, one bounded queue."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.tails.clock import Clock
from trainmon.tails.continued import Continuations
from trainmon.tails.discover import STDIN, Discovery, RunFile, RunFiles, discover
from trainmon.tails.formats import registry
from trainmon.tails.fstype import Mount, mount_behind, read_mounts
from trainmon.tails.give_back import GivingBack
from trainmon.tails.here import here
from trainmon.tails.ingest import Detect
from trainmon.tails.item_queue import ItemQueue
from trainmon.tails.jobs import JobSource
from trainmon.tails.opening import show
from trainmon.tails.read_once import is_one_large_file, open_source, read_all
from trainmon.tails.reader import IntakeItem, Lines, Reader, Source
from trainmon.tails.run_owners import RunOwners
from trainmon.tails.searches import by_host, may_find_more, together
from trainmon.tails.shared_settings import SharedSettings
from trainmon.tails.stdin_items import stdin_items
from trainmon.tails.stdin_source import StdinTail
from trainmon.tails.worker_top import in_words

if TYPE_CHECKING:
    from trainmon.tails.ssh.address import Address, RemotePath
    from trainmon.tails.ssh.reader import HostReader

QUEUE_ITEMS = 64
RESCAN_S = 5.0
_path = lru_cache(4096)(Path)  # the screen asks for the same few, again and again
_SCAN_SHARE = 20.0  # looking for new runs takes at most a twentieth of the time
HANGS_AFTER_S = 10.0

__all__ = ["Intake", "IntakeItem", "is_one_large_file", "read_all"]


class Intake:
    """Reads the runs of `source` (a `Discovery`, or targets, which are then looked for in a thread of its own).

    `follow` True: goes on as files grow, and looks for new ones every `RESCAN_S`; False: reads all once and is then
    `is_done`. Threads start at once; `get` takes what they read; `stop` ends them.
    `previews`: long logs are told of by some of their records (`IntakeItem.preview`) before they are read.
    `stdin_fd`: what the target ``-`` reads (see `stdin_source.take_stdin`). `jobs`: who knows a scheduler's jobs.
    """

    def __init__(
        self,
        source: Discovery | Sequence[str],
        *,
        clock: Clock,
        follow: bool = True,
        cwd: Path | None = None,
        detect: Detect = registry.detect,
        use_inotify: bool = True,
        stdin_fd: int = 0,
        jobs: JobSource | None = None,
        previews: bool = False,
    ) -> None:
        self._clock = clock
        self._jobs = jobs
        self._follow = follow
        self._previews = previews
        self._detect = detect
        self._use_inotify = use_inotify
        self._stdin_fd = stdin_fd
        self._queue = ItemQueue(QUEUE_ITEMS)
        self._giving_back = GivingBack(clock)
        self._readers: dict[str, Reader] = {}
        self._reader_of: dict[Path, Reader | HostReader] = {}
        self._lock = threading.Lock()
        self._stop_event = threading.Event()
        self._scan_now = threading.Event()
        self._is_scanned = threading.Event()
        self._stdin_left = 0
        self._host_readers: dict[Address, HostReader] = {}
        self.discovery = Discovery((), (), "")
        self._logs = Continuations()
        known = source if isinstance(source, Discovery) else None
        self._targets = known.targets if known is not None else tuple(source)  # type: ignore[arg-type]
        self._cwd = known.cwd if known is not None else (cwd or here())
        self._owners = RunOwners(self._cwd)
        self._settings = SharedSettings()
        self._found: dict[Address | None, Discovery] = {}
        self._failures: dict[str, str] = {}  # of threads of its own: what they did -> one line
        self._parts = by_host(self._targets, self._cwd)
        self._unscanned = {None} if known is not None else set(self._parts)
        if known is not None:
            self._adopt(known, None)
        for address, targets in self._parts.items():
            if known is None or (follow and may_find_more(targets, self._cwd, known)):
                where = (address, targets, known is not None)
                threading.Thread(target=self._scan_forever, args=where, name="trainmon-scanner", daemon=True).start()

    # -- what the owner sees -----------------------------------------------------------------------------------

    @property
    def runs(self) -> tuple[RunFiles, ...]:
        """The runs that are read, in the order they were found. A run keeps its name."""
        with self._lock:
            return tuple(self._owners.runs.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be found or read, and mounts that do not answer; one line each."""
        now = self._clock.monotonic()
        lines = list(self.discovery.problems)
        lines += self._host_problems()
        for reader in self._all_readers():
            busy = reader.busy_with
            if busy is not None and now - busy[1] > HANGS_AFTER_S:
                where = f"the file system at {show(reader.mount.point)} ({reader.mount.fstype})"
                lines.append(f"{show(busy[0])}: {where} has not answered for {now - busy[1]:.0f} s; is its server up?")
            if reader.watcher.problem:
                lines.append(reader.watcher.problem)
        readers: list[Reader | HostReader] = [*self._all_readers(), *self._host_readers.values()]
        lines += [reader.failure for reader in readers if reader.failure]
        lines += self._failures.values()
        return tuple(dict.fromkeys(lines))

    @property
    def is_scanned(self) -> bool:
        """Whether the targets were looked for at least once."""
        return self._is_scanned.is_set()

    @property
    def is_done(self) -> bool:
        """Whether all was read and taken (only ever so with `follow` False)."""
        if self._follow or not self._is_scanned.is_set() or self._stdin_left:
            return False
        readers: list[Reader | HostReader] = [*self._all_readers(), *self._host_readers.values()]
        return all(reader.is_done for reader in readers) and self._queue.empty()

    def get(self, timeout_s: float) -> list[IntakeItem]:
        """What was read since the last `get`; waits up to `timeout_s` for a first item. In order for each file."""
        items: list[IntakeItem | None] = []
        if self._follow:
            self._giving_back.when_due()
        try:
            items.append(self._queue.get(timeout=timeout_s) if timeout_s > 0 else self._queue.get_nowait())
            while len(items) < QUEUE_ITEMS:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return self._settings.told(item for item in items if item is not None)

    def read_histories(self) -> None:
        """Logs whose preview was given are read as well; none is before this is called."""
        for reader in self._all_readers():
            reader.read_histories()

    def wake(self) -> None:
        """Ends a `get` that waits, or the next one that would."""
        with contextlib.suppress(queue.Full):  # then there is something to get
            self._queue.put_nowait(None)

    def attend(self, runs: frozenset[str], others_s: float) -> None:
        """Files of `runs` are read as they grow; those of all others together, every `others_s` seconds."""
        with self._lock:
            paths = self._owners.paths_of(runs)
        for reader in self._all_readers():
            reader.attend(paths, others_s)

    def written_s(self, path: str) -> float | None:
        """When `path` was last seen to be written to, on the monotonic clock: before it is read. None: not known."""
        reader = self._reader_of.get(_path(path))
        if reader is None:
            return None
        return reader.watcher.written_at.get(path) if isinstance(reader, Reader) else reader.written_s(path)

    def request_lines(
        self, path: str | Path, line_no: int, context: int = 50, known: tuple[int, int] = (1, 0)
    ) -> Lines:
        """Raw lines around `line_no` of a file that is read: a future, filled by the file's own reader thread."""
        reader = self._reader_of.get(Path(path))
        if reader is None:
            empty: Lines = Future()
            empty.set_result([])
            return empty
        return reader.request_lines(Path(path), line_no, context, known)

    def rescan(self) -> None:
        """Looks for new runs and files now, in the scanner's thread."""
        self._scan_now.set()

    def stop(self) -> None:
        """Ends all threads; does not wait for one that hangs."""
        self._stop_event.set()
        self._scan_now.set()
        readers: list[Reader | HostReader] = [*self._all_readers(), *self._host_readers.values()]
        for reader in readers:
            reader.stop()
        for reader in readers:
            if reader.ident is not None:
                reader.join(timeout=0.5)

    def _host_problems(self) -> list[str]:
        """What is wrong with connections now, in place of what the last search on those hosts found."""
        with self._lock:
            searched = [address for address in self._parts if address is not None]
        if not searched:
            return []
        from trainmon.tails.ssh.hosts import hosts

        return [problem for host in hosts().known if host.address in searched and (problem := host.problem)]

    # -- finding -----------------------------------------------------------------------------------------------

    def _all_readers(self) -> list[Reader]:
        with self._lock:
            return list(self._readers.values())

    def _scan_forever(self, address: Address | None, targets: tuple[str, ...], is_known: bool) -> None:
        """Looks for the runs of `targets`, which lie on one host (None: this one), again and again."""
        pause_s = RESCAN_S if is_known else 0.0
        while not self._stop_event.is_set():
            if pause_s:
                self._scan_now.wait(pause_s)
                self._scan_now.clear()
                if self._stop_event.is_set():
                    return
            began = self._clock.monotonic()
            try:
                found = discover(targets, self._cwd, self._jobs, self._logs)
                self._adopt(found, address)
            except Exception as error:  # the top of this thread: new runs would never be found, and no one know why
                self._failures["scan"] = in_words("looking for runs", error)
                pause_s = RESCAN_S
                continue
            self._failures.pop("scan", None)
            if not self._follow or not may_find_more(targets, self._cwd, found):
                return
            pause_s = max(RESCAN_S, _SCAN_SHARE * (self._clock.monotonic() - began))

    def _adopt(self, found: Discovery, address: Address | None) -> None:
        """Takes over the runs and files that are new. What is known keeps its run and its name."""
        mounts = read_mounts()
        sources: list[tuple[Reader | HostReader, Source]] = []
        with self._lock:
            self._found[address] = found
            self.discovery = together(self._found, self._parts, self._targets, self._cwd)
            for run in found.runs:
                name, fresh, shared = self._owners.take(run, self._move)
                for file in shared:
                    self._settings.share(file.path, name)
                for file in fresh:
                    if file.path == STDIN:
                        self._start_stdin(name)
                    else:
                        sources.append(self._source(name, file, mounts))
        sources.sort(key=lambda pair: pair[1].role != "config")  # settings hold from the first record on
        for reader, source in sources:
            reader.add(source)
        self._unscanned.discard(address)
        if not self._unscanned:
            self._is_scanned.set()
        with self._lock:
            for each in (*self._readers.values(), *self._host_readers.values()):
                if each.ident is None:  # new, or there was no thread to be had for it the last time
                    each.start()

    def _move(self, old: Path, new: Path) -> None:
        reader = self._reader_of[new] = self._reader_of.pop(old)
        reader.move(old, new)

    def _source(self, name: str, file: RunFile, mounts: tuple[Mount, ...]) -> tuple[Reader | HostReader, Source]:
        if file.remote is not None:
            return self._remote_source(name, file, file.remote)
        mount = mount_behind(file.path, mounts)
        reader = self._readers.get(mount.point)
        if reader is None:
            reader = Reader(
                mount,
                self._queue,
                clock=self._clock,
                follow=self._follow,
                use_inotify=self._use_inotify,
                preview_by=self._detect if self._previews else None,
            )
            self._readers[mount.point] = reader
        self._reader_of[file.path] = reader
        tail = open_source(file, self._clock, self._detect, must_reopen=mount.is_blind and self._follow)
        return reader, Source(name, file.path, file.role, tail)

    def _remote_source(self, name: str, file: RunFile, remote: RemotePath) -> tuple[HostReader, Source]:
        from trainmon.tails.ssh.hosts import hosts
        from trainmon.tails.ssh.reader import HostReader

        reader = self._host_readers.get(remote.address)
        if reader is None:
            reader = HostReader(hosts().host(remote.address), self._queue, clock=self._clock, follow=self._follow)
            self._host_readers[remote.address] = reader
        self._reader_of[file.path] = reader
        return reader, Source(name, file.path, file.role, reader.open(remote, file.role, self._detect))

    # -- standard input ----------------------------------------------------------------------------------------

    def _start_stdin(self, name: str) -> None:
        self._stdin_left += 1
        tail = StdinTail(self._stdin_fd, clock=self._clock, detect=self._detect)
        threading.Thread(target=self._read_stdin, args=(name, tail), name="trainmon-stdin", daemon=True).start()

    def _read_stdin(self, name: str, tail: StdinTail) -> None:
        for item in stdin_items(name, tail, self._stop_event):
            self._put(item)
        self._stdin_left -= 1

    def _put(self, item: IntakeItem) -> None:
        while not self._stop_event.is_set():
            try:
                self._queue.put(item, timeout=0.2)
            except queue.Full:
                continue
            break
