"""One thread that reads the logs of one host, with the interface of `reader.Reader`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from trainmon.tails.clock import Clock
from trainmon.tails.ingest import Detect
from trainmon.tails.reader import BUDGET_BYTES, IntakeItem, Lines, Source, failed, joined, status_differs
from trainmon.tails.record import Parsed
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.tail import PATIENCE_S, RemoteConfig, RemoteTail
from trainmon.tails.status import FileStatus
from trainmon.tails.tail import Tail, TailUpdate
from trainmon.tails.worker_top import keep_going

_QUIET_S = 1.1  # a log that has been quiet for so long gives what it held back (tail.QUIET_S)
_TURNS = 5
_CONFIG_S = 10.0
_IDLE_S = 0.5


class HostReader(threading.Thread):
    """Polls what the host's thread says has news, and puts what came into `out`, waiting where that is full.

    `follow` False: each source is read to its end once. Commands may come from any thread.
    """

    def __init__(self, host: Host, out: queue.Queue[IntakeItem | None], *, clock: Clock, follow: bool) -> None:
        super().__init__(name=f"trainmon-reader {host.address.name}", daemon=True)
        self.host = host
        self.failure = ""  # one line once this thread's own work has failed
        self._out = out
        self._clock = clock
        self._follow = follow
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._sources: dict[Path, Source] = {}
        self._woken: dict[Path, None] = {}
        self._again_at: dict[Path, float] = {}
        self._turns: dict[Path, int] = {}  # polls since it was woken
        self._condition = threading.Condition()
        self._stop_event = threading.Event()
        self._left = 0

    @property
    def is_done(self) -> bool:
        """Whether every source that was added was read to its end (never, when following)."""
        return self._left == 0

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong with the connection."""
        return (self.host.problem,) if self.host.problem else ()

    def open(self, remote: RemotePath, role: str, detect: Detect) -> Tail | RemoteConfig:
        """What reads `remote`; give it back in a `Source`."""
        if role == "config":
            return RemoteConfig(remote, self.host)
        label = Path(remote.name)
        patience_s = 0.0 if self._follow else PATIENCE_S
        return RemoteTail(
            remote,
            self.host,
            clock=self._clock,
            detect=detect,
            wake=lambda: self._wake(label),
            patience_s=patience_s,
        )

    def add(self, source: Source) -> None:
        """Takes over `source`."""
        with self._condition:
            self._left += 1
        self._do(lambda: self._add(source))

    def written_s(self, path: str) -> float | None:
        """When a log was last seen to be written to, on the monotonic clock."""
        source = self._sources.get(Path(path))
        return source.tail.written_at if source is not None and isinstance(source.tail, RemoteTail) else None

    def move(self, old: Path, new: Path) -> None:
        """Goes on with the document at `old` in `new`."""
        self._do(lambda: self._move(old, new))

    def request_lines(self, path: Path, line_no: int, context: int, known: tuple[int, int] = (1, 0)) -> Lines:
        """Lines around `line_no`, read over there by this thread; `known` is of files here."""
        del known
        answer: Lines = Future()
        self._do(lambda: self._answer(answer, path, line_no, context))
        return answer

    def stop(self) -> None:
        """Ends the thread as soon as the poll that is going on returns."""
        self._stop_event.set()
        with self._condition:
            self._condition.notify_all()

    def run(self) -> None:
        """Works until stopped."""
        keep_going(f"reading from {self.host.address.name}", self._round, self._stop_event, self._say)
        for source in list(self._sources.values()):
            if isinstance(source.tail, RemoteTail):
                source.tail.close()

    def _round(self) -> None:
        while not self._inbox.empty():
            self._inbox.get()()
        for path in self._due():
            source = self._sources.get(path)
            if self._stop_event.is_set():
                break
            if source is not None:
                self._serve(source)

    def _say(self, failure: str) -> None:
        self.failure = failure
        with self._condition:
            self._woken.update(dict.fromkeys(self._sources))  # what the failed round had taken up is looked at again

    # -- one round -----------------------------------------------------------------------------------------------

    def _due(self) -> list[Path]:
        """What to poll now; waits for it."""
        with self._condition:
            if not self._woken and self._inbox.empty() and not self._stop_event.is_set():
                now = self._clock.monotonic()
                next_at = min(self._again_at.values(), default=now + _IDLE_S)
                self._condition.wait(min(max(next_at - now, 0.01), _IDLE_S))
            woken, self._woken = self._woken, {}
        now = self._clock.monotonic()
        self._turns = {path: turns for path, turns in self._turns.items() if path not in woken}
        for path in [path for path, at in self._again_at.items() if at <= now]:
            del self._again_at[path]
            woken[path] = None
        return sorted(woken, key=self._comes_later)

    def _comes_later(self, path: Path) -> bool:
        """Settings come first: they hold from the first record on."""
        source = self._sources.get(path)
        return source is None or source.role != "config"

    def _serve(self, source: Source) -> None:
        if isinstance(source.tail, RemoteTail) and not source.tail.is_known:
            return  # it wakes us when there is something to say
        try:
            item, more = self._poll(source)
        except Exception as error:  # the top of this worker: one source that fails must not stop the others
            item, more = failed(source, error), False
        has_news = not item.update.is_empty or item.config is not None
        if has_news or item.is_ended or status_differs(item.status, source.told):
            source.told = item.status
            self._put(item)
        if item.is_ended:
            self._forget(source)
        elif more:
            self._wake(source.path)
        elif isinstance(source.tail, RemoteConfig):
            self._again_at[source.path] = self._clock.monotonic() + _CONFIG_S
        elif (turns := self._turns.get(source.path, 0)) < _TURNS:  # for what is only given after some quiet
            self._turns[source.path] = turns + 1
            self._again_at[source.path] = self._clock.monotonic() + _QUIET_S

    def _poll(self, source: Source) -> tuple[IntakeItem, bool]:
        tail = source.tail
        if not isinstance(tail, Tail):
            content = tail.poll()
            empty = TailUpdate(Parsed())
            return _item(source, empty, tail.status(), config=content, is_ended=not self._follow), False
        update = tail.poll(BUDGET_BYTES)
        is_ended = not self._follow and not update.more
        if is_ended:
            update = joined(update, tail.finish())
        return _item(source, update, tail.status(), is_ended=is_ended), update.more

    def _put(self, item: IntakeItem) -> None:
        while not self._stop_event.is_set():
            try:
                self._out.put(item, timeout=0.2)
            except queue.Full:
                continue
            return

    def _wake(self, path: Path) -> None:
        with self._condition:
            self._woken[path] = None
            self._condition.notify_all()

    # -- commands ------------------------------------------------------------------------------------------------

    def _do(self, command: Callable[[], None]) -> None:
        self._inbox.put(command)
        with self._condition:
            self._condition.notify_all()

    def _add(self, source: Source) -> None:
        self._sources[source.path] = source
        self._wake(source.path)

    def _forget(self, source: Source) -> None:
        self._sources.pop(source.path, None)
        self._again_at.pop(source.path, None)
        if isinstance(source.tail, RemoteTail):
            source.tail.close()
        with self._condition:
            self._left -= 1

    def _move(self, old: Path, new: Path) -> None:
        source = self._sources.pop(old, None)
        if source is None or not isinstance(source.tail, RemoteTail):
            return
        source.tail.wake_as(lambda: self._wake(new))
        source.tail.move_to(new)
        source.path = new
        self._sources[new] = source
        self._wake(new)

    def _answer(self, answer: Lines, path: Path, line_no: int, context: int) -> None:
        source = self._sources.get(path)
        try:
            tail = source.tail if source is not None else None
            answer.set_result(tail.line_at(line_no, context) if isinstance(tail, Tail) else [])
        except Exception as error:  # the top of this worker: who waits for the lines is told
            answer.set_exception(error)


def _item(
    source: Source,
    update: TailUpdate,
    status: FileStatus,
    *,
    config: bytes | None = None,
    is_ended: bool = False,
) -> IntakeItem:
    return IntakeItem(source.run_name, source.label, update, status, source.role, config, is_ended)
