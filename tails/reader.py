"""One thread that reads the files of one mount. A mount that hangs stops its own reader and no other."""

from __future__ import annotations

import queue
import resource
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trainmon.tails.clock import Clock
from trainmon.tails.config_file import ConfigFile
from trainmon.tails.fstype import Mount
from trainmon.tails.give_way import KEYS
from trainmon.tails.ingest import Detect
from trainmon.tails.opening import show
from trainmon.tails.preview import preview
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Parsed
from trainmon.tails.status import FileStatus, LogLine
from trainmon.tails.tail import Tail, TailUpdate
from trainmon.tails.watch import POLL, Watcher
from trainmon.tails.worker_top import keep_going

if TYPE_CHECKING:
    from concurrent.futures import Future

BUDGET_BYTES = 1 << 20
SHARED_BUDGET_BYTES = 256 << 10  # when many files are behind, so that each gets its turn soon
_MANY = 8
_IDLE_S = 5.0
_MAX_OPEN = 512

Lines: TypeAlias = "Future[list[LogLine]]"


@dataclass(frozen=True, slots=True)
class IntakeItem:
    """What one poll of one file gave.

    `path`: stays the same when the file's place changes (the next checkpoint's state); `status.path` is the place.
    `preview`: some records of a long log whose history is still to be read, for drawing only; nothing else is in it.
    `config`: the content of a settings file (role "config"), at first and when it changed; such items hold no
    records. `is_ended`: nothing more will come from this source (it was read to its end, or stdin closed).
    """

    run_name: str
    path: str
    update: TailUpdate
    status: FileStatus
    role: str = "stdout"
    config: bytes | None = None
    is_ended: bool = False
    preview: Parsed | None = None


@dataclass(slots=True)
class Source:
    """A file that a reader owns. `label` is its path in all items, also after it moved on to another `path`."""

    run_name: str
    path: Path
    role: str
    tail: Tail | ConfigFile
    told: FileStatus | None = None
    label: str = ""

    def __post_init__(self) -> None:
        self.label = self.label or str(self.path)


class Reader(threading.Thread):
    """Polls its sources as their watcher says and puts what came into `out`, waiting where that is full.

    `follow` False: each source is read to its end once. `preview_by`: how the format of a long log is told, whose
    preview comes before its history; None for no previews. Commands (`add`, `move`, `request_lines`) may come from
    any thread and are done by this one.
    """

    def __init__(
        self,
        mount: Mount,
        out: queue.Queue[IntakeItem | None],
        *,
        clock: Clock,
        follow: bool,
        use_inotify: bool = True,
        preview_by: Detect | None = None,
    ) -> None:
        super().__init__(name=f"trainmon-reader {mount.point}", daemon=True)
        self.mount = mount
        self.busy_with: tuple[str, float] | None = None  # path and when its poll began, for who asks what hangs
        self.failure = ""  # one line once this thread's own work has failed
        self.watcher = Watcher(clock, use_inotify=use_inotify)
        self._out = out
        self._clock = clock
        self._follow = follow
        self._preview_by = preview_by
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sources: dict[Path, Source] = {}
        self._backlog: dict[Path, None] = {}  # what is to be polled now, in this order
        self._new: list[tuple[bool, float, Path]] = []
        self._held: dict[Path, tuple[bool, float, Path]] | None = {}  # behind their previews; None once all is let go
        self._open: set[Path] = set()
        self._stop_event = threading.Event()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._max_open = _MAX_OPEN if limit == resource.RLIM_INFINITY else max(min(limit // 4, _MAX_OPEN), 8)
        self._left = 0
        self._attended: tuple[frozenset[Path], float] | None = None
        self._lock = threading.Lock()

    @property
    def is_done(self) -> bool:
        """Whether every source that was added was read to its end (never, when following)."""
        return self._left == 0

    def add(self, source: Source) -> None:
        """Takes over `source`."""
        with self._lock:
            self._left += 1
        self._do(lambda: self._add(source))

    def move(self, old: Path, new: Path) -> None:
        """Goes on with the document at `old` in `new`."""
        self._do(lambda: self._move(old, new))

    def attend(self, paths: frozenset[Path], others_s: float) -> None:
        """Reads `paths` as they grow; other files together, every `others_s` seconds when they are written to."""
        told = self._attended
        if told is None or told[0] != paths or not 0.9 * told[1] <= others_s <= 1.1 * told[1]:
            self._attended = (paths, others_s)
            self._do(lambda: self.watcher.attend(paths, others_s))

    def read_histories(self) -> None:
        """Logs whose preview was given are read from now on; until then the machine is left to who draws it."""
        if self._held is not None:
            self._do(self._let_go)

    def request_lines(self, path: Path, line_no: int, context: int, known: tuple[int, int] = (1, 0)) -> Lines:
        """Lines around `line_no`, read from the disk by this thread."""
        from concurrent.futures import Future  # it brings logging; reading once needs neither

        answer: Lines = Future()
        self._do(lambda: self._answer(answer, path, line_no, context, known))
        return answer

    def stop(self) -> None:
        """Ends the thread as soon as the poll that is going on returns."""
        self._stop_event.set()
        self.watcher.interrupt()

    def run(self) -> None:
        """Works until stopped."""
        try:
            keep_going(f"reading {show(self.mount.point)}", self._round, self._stop_event, self._say)
        finally:
            for source in self._sources.values():
                source.tail.release()
            self.watcher.close()

    def _say(self, failure: str) -> None:
        self.failure = failure
        self._backlog.update(dict.fromkeys(self._sources))  # what the failed round had taken up is looked at again

    # -- one round ---------------------------------------------------------------------------------------------

    def _round(self) -> None:
        while not self._inbox.empty():
            KEYS.give()  # a file that is new is looked into for its preview
            self._inbox.get()()
        self._sort_what_is_new()
        for path in self.watcher.wait(0.0 if self._backlog else _IDLE_S):
            if path in self._sources and not (self._held and path in self._held):
                self._backlog.setdefault(path)
        budget = BUDGET_BYTES if len(self._backlog) <= _MANY else SHARED_BUDGET_BYTES
        for path in list(self._backlog):
            if self._stop_event.is_set():
                return
            KEYS.give()
            del self._backlog[path]
            source = self._sources.get(path)
            if source is not None and self._serve(source, budget):
                self._backlog[path] = None

    def _serve(self, source: Source, budget: int) -> bool:
        """Polls `source` once; True when more is there at once."""
        began = self._clock.monotonic()
        self.busy_with = (str(source.path), began)
        try:
            item, more = self._poll(source, budget)
        except Exception as error:  # the top of this worker: one source that fails must not stop the others
            item, more = failed(source, error), False
        finally:
            self.busy_with = None
        has_news = not item.update.is_empty or item.config is not None
        if has_news or item.is_ended or status_differs(item.status, source.told):
            source.told = item.status
            self._put(item)
        if item.is_ended:
            self._forget(source.path)
            return False
        if not more:
            took_s = self._clock.monotonic() - began
            self.watcher.polled(
                source.path,
                changed=has_news,
                age_s=item.status.newest_age_s,
                cost_s=None if has_news else took_s,
                again_s=source.tail.gives_in_s if isinstance(source.tail, Tail) else None,
            )
        return more

    def _poll(self, source: Source, budget: int) -> tuple[IntakeItem, bool]:
        tail = source.tail
        if isinstance(tail, ConfigFile):
            content = tail.poll()
            empty = TailUpdate(Parsed())
            return self._item(source, empty, tail.status(), config=content, is_ended=not self._follow), False
        tail.watched_by = self.watcher.watched_by(source.path)
        update = tail.poll(budget)
        is_ended = not self._follow and not update.more
        if is_ended:
            update = joined(update, tail.finish())
            tail.release()
        self._spare_descriptors(source.path, tail)
        return self._item(source, update, tail.status(), is_ended=is_ended), update.more

    def _item(
        self,
        source: Source,
        update: TailUpdate,
        status: FileStatus,
        *,
        config: bytes | None = None,
        is_ended: bool = False,
    ) -> IntakeItem:
        return IntakeItem(source.run_name, source.label, update, status, source.role, config, is_ended)

    def _put(self, item: IntakeItem) -> None:
        while not self._stop_event.is_set():
            try:
                self._out.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

    def _spare_descriptors(self, path: Path, tail: Tail) -> None:
        """Keeps no more descriptors than the process can well spare; a file without one is opened at each look."""
        if tail.is_open:
            self._open.add(path)
        if len(self._open) > self._max_open:
            tail.release()
            self._open.discard(path)

    # -- commands ----------------------------------------------------------------------------------------------

    def _do(self, command: Callable[[], None]) -> None:
        self._inbox.put(command)
        self.watcher.interrupt()

    def _add(self, source: Source) -> None:
        self.busy_with = (str(source.path), self._clock.monotonic())
        self._sources[source.path] = source
        by = self.watcher.add(source.path, self.mount) if self._follow else POLL
        if isinstance(source.tail, Tail):
            source.tail.watched_by = by
            source.tail.filesystem = self.mount.fstype
        has_preview = isinstance(source.tail, Tail) and self._preview(source, source.tail)
        entry = (source.role != "config", _age(source.path), source.path)
        if has_preview and self._held is not None:
            self._held[source.path] = entry
        else:
            self._new.append(entry)
        self.busy_with = None

    def _preview(self, source: Source, tail: Tail) -> bool:
        if self._preview_by is None:
            return False
        try:
            found = preview(source.path, source.label, self._preview_by)
        except Exception:  # as in `_serve`: reading the history will say what is wrong
            return False
        if found is not None:
            item = self._item(source, TailUpdate(Parsed()), tail.status())
            self._put(replace(item, preview=found))
        return found is not None

    def _let_go(self) -> None:
        self._new += (self._held or {}).values()
        self._held = None

    def _sort_what_is_new(self) -> None:
        """Settings come first: they hold from the first record on. Then the newest: somebody waits for those."""
        if self._new:
            fresh = [path for _, _, path in sorted(self._new)]
            self._backlog = dict.fromkeys((*fresh, *self._backlog))
            self._new.clear()

    def _forget(self, path: Path) -> None:
        self._sources.pop(path, None)
        self._open.discard(path)
        self.watcher.remove(path)
        with self._lock:
            self._left -= 1

    def _move(self, old: Path, new: Path) -> None:
        source = self._sources.pop(old, None)
        if source is None or isinstance(source.tail, ConfigFile):
            return
        self.watcher.remove(old)
        source.tail.move_to(new)
        source.path = new
        self._sources[new] = source
        self.watcher.add(new, self.mount)

    def _answer(self, answer: Lines, path: Path, line_no: int, context: int, known: tuple[int, int]) -> None:
        source = self._sources.get(path)
        self.busy_with = (str(path), self._clock.monotonic())
        try:
            tail = source.tail if source is not None else None
            answer.set_result(tail.line_at(line_no, context, known) if isinstance(tail, Tail) else [])
        except Exception as error:  # the top of this worker: who waits for the lines is told
            answer.set_exception(error)
        finally:
            self.busy_with = None


def failed(source: Source, error: Exception) -> IntakeItem:
    """The last item of a source whose reading raised what it never should."""
    status = replace(source.tail.status(), problem=f"{show(source.path)}: {failure_words(error)}")
    return IntakeItem(source.run_name, source.label, TailUpdate(Parsed()), status, source.role, is_ended=True)


def failure_words(error: Exception) -> str:
    """What is said of a source whose reading raised `error`."""
    return f"reading failed inside trainmon ({type(error).__name__}: {show(str(error))}); please report it"


def joined(first: TailUpdate, last: TailUpdate) -> TailUpdate:
    """Two updates of one source as one."""
    parsed = Parsed()
    parsed.add(first.parsed)
    parsed.add(last.parsed)
    return TailUpdate(parsed, first.restarted, False, first.lines + last.lines)


def status_differs(status: FileStatus, told: FileStatus | None) -> bool:
    """Whether a status says something that `told` did not; that time passes is nothing new."""
    if told is None:
        return True
    return replace(status, newest_age_s=None) != replace(told, newest_age_s=None)


def _age(path: Path) -> float:
    """Sorts the newest first."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return 0.0
