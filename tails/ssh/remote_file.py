"""One file on another host as its bytes arrive: what was received, what is to be asked for, what happened to it.

The far side says what it finds; this decides what it means, as `follow.Follower` does for a local file: content
decides. A file is known by the first up to 4 KiB and the last up to 1 KiB that were received; every answer is checked
against them there, and a file that goes on with other bytes begins anew. After a lost connection the question is asked
again from the byte after the last one that arrived, so nothing is lost or repeated. Before a replaced file begins anew,
the older one is looked for beside it (a rotation) and read to its end.

The host's thread calls `answer_*`, `tick`, `connected` and `disconnected`; the reader's thread calls `take`, `rewind`.
"""

from __future__ import annotations

import errno
import threading
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

from trainmon.tails.follow import FileEvent
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.answer import Status
from trainmon.tails.ssh.frame import BadAnswer

HEAD_BYTES = 4096
TAIL_BYTES = 1024
SETTLE_S = 1.0  # a shrunk file that is a prefix of what was read may be in the midst of being rewritten
KEPT_HEAD_BYTES = 64 << 10  # of a log whose history is left out: what tells its format, and how it was started
AGAIN_S = 0.5  # zeros at an end are asked for again: they may be data that is not visible yet
WINDOW_BYTES = 256 << 10  # of one file, sent before any of it was taken
_GONE = (errno.ENOENT, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the far side: what follows `offset`, in a file whose content so far is this."""

    turn: int
    offset: int
    credit: int
    head: bytes
    tail: bytes
    identity: tuple[int, int] | None

    def words(self) -> bytes:
        """As the reader there takes them."""
        sums = (len(self.head), zlib.crc32(self.head), len(self.tail), zlib.crc32(self.tail))
        return b"%d %d %d %d %d %d %d" % (self.turn, self.offset, self.credit, *sums)


class Asker(Protocol):
    """What a file needs of its host; all for the host's thread."""

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Sends a question."""
        ...

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets the far side send `amount` more bytes."""
        ...

    def find_older(
        self, file: RemoteFile, question: Question, present: tuple[int, int], done: Callable[[bytes | None], None]
    ) -> None:
        """Looks for what `question` describes beside the file; gives the bytes after it, up to where the file of the
        identity `present` begins, to `done`, or None."""
        ...


@dataclass(slots=True)
class Arrived:
    """Bytes at an offset, or an event (a rotation with the length of the file before it)."""

    data: bytes | memoryview = b""
    offset: int = 0
    event: FileEvent | None = None


class RemoteFile:
    """The state of one watched file. `wake` is called whenever there is something new to take."""

    def __init__(
        self, number: int, path: str, asker: Asker, wake: Callable[[], None], *, history: int | None = None
    ) -> None:
        self.number = number
        self.path = path
        self.wake = wake
        self.status: Status | None = None
        self.error = 0  # an errno
        self.is_answered = False  # since the link is up
        self.was_answered = False
        self.is_at_end = False
        self.offset = 0
        self.left_out = 0  # bytes between a long log's head and its end that were not asked for
        self._history = history
        self._is_mid_line = False
        self._asker = asker
        self._lock = threading.RLock()
        self._arrived: deque[Arrived] = deque()
        self._queued = 0
        self._credit = 0  # what the far side may still send
        self._window = WINDOW_BYTES
        self._allowance: int | None = None
        self._turn = 0
        self._head = b""
        self._tail = b""
        self._identity: tuple[int, int] | None = None
        self._is_there = False
        self._is_up = False
        self._is_waiting = False  # for an older file to be read
        self._shrunk_at: float | None = None
        self._ask_at: float | None = None
        self._restart_as = FileEvent.TRUNCATED

    # -- the reader's side -------------------------------------------------------------------------------------

    @property
    def has_news(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._arrived)

    def take(self, budget: int) -> tuple[bytes, int, list[Arrived], bool]:
        """Bytes, where they begin, what happened before them, and whether there is more to take."""
        events: list[Arrived] = []
        pieces: list[bytes | memoryview] = []
        size = start = 0
        with self._lock:
            while self._arrived:
                first = self._arrived[0]
                if pieces and (first.event is not None or first.offset != start + size):
                    break
                if pieces and size + len(first.data) > budget:  # cutting it would copy it
                    break
                self._arrived.popleft()
                if first.event is not None:
                    events.append(first)
                    continue
                if not pieces:
                    start = first.offset
                room = budget - size
                if len(first.data) > room:
                    whole = memoryview(first.data)  # the rest of it is not copied each time
                    self._arrived.appendleft(Arrived(whole[room:], first.offset + room))
                    first.data = whole[:room]
                pieces.append(first.data)
                size += len(first.data)
            self._queued -= size
            if size:
                self._allow()
            if not pieces:
                start = self.offset
            return b"".join(pieces), start, events, bool(self._arrived)

    def rewind(self, offset: int) -> None:
        """Asks again, a little later, for what follows `offset`; for bytes that were taken last."""
        with self._lock:
            if any(arrived.event is not None for arrived in self._arrived):
                return
            count = self.offset - offset
            self._queued = 0
            self._arrived.clear()
            self._tail = self._tail[:-count] if count else self._tail
            self._head = self._head[:offset]
            self.offset = offset
            self._turn += 1  # answers on their way are no longer wanted
            self._is_waiting = False
            self._ask_at = -1.0  # from the next tick on

    # -- the host's side ---------------------------------------------------------------------------------------

    def connected(self) -> None:
        """The link is up, and the far side watches the path: asks for what comes next."""
        with self._lock:
            self._is_up = True
            self.is_answered = False
            self._is_waiting = False
            self._shrunk_at = None
            self._ask()

    def disconnected(self) -> None:
        """The link is down. What was asked is forgotten."""
        with self._lock:
            self._is_up = False
            self._turn += 1
            self._ask_at = None
            self._credit = 0

    def tick(self, now: float) -> None:
        """Asks what was put off."""
        with self._lock:
            if self._ask_at == -1.0:
                self._ask_at = now + AGAIN_S
            elif self._ask_at is not None and now >= self._ask_at and self._is_up:
                self._ask()

    def answer_errno(self, error: int) -> None:
        """The path cannot be read."""
        with self._lock:
            self.error = error
            self._answered()
            if error in _GONE and self._is_there:
                self._is_there = False
                self._restart_as = FileEvent.REPLACED
                self._arrived.append(Arrived(event=FileEvent.GONE))
            if error in _GONE or self._identity is None:
                self.is_at_end = True
            self.wake()

    def answer_stat(self, status: Status) -> None:
        """What the path leads to; its bytes were not sent (no file, or no credit)."""
        with self._lock:
            self.error = 0
            self.status = status
            self._answered()
            self.is_at_end = self.is_at_end and status.size <= self.offset
            self.wake()

    def answer_data(self, turn: int, status: Status, offset: int, data: bytes) -> None:
        """Bytes of the file. Raises BadAnswer for some that were not asked for."""
        with self._lock:
            if turn != self._turn or self._is_waiting:
                return
            if offset < self.offset or len(data) > self._credit:
                raise BadAnswer("it sent bytes that were not asked for")
            if not self.offset and self._identity not in (None, status.identity):
                self._look_for_older(status)  # the file that was here was replaced before any of it was read
                return
            self._credit -= len(data)
            self.error = 0
            if not self._is_there:
                self._is_there = True
                self._arrived.append(Arrived(event=FileEvent.APPEARED))
            if status.identity != self._identity:
                self._restart_as = FileEvent.TRUNCATED if self._identity is None else FileEvent.REPLACED
            self._identity = status.identity
            self._shrunk_at = None
            self.status = status
            if offset > self.offset:  # a hole
                self.offset, self._tail = offset, b""
            self._receive(data)
            if self._history is not None and not self.left_out and self._is_long_text(status, self._history):
                self._leave_out(status.size - self._history)
                return
            self.is_at_end = self.offset >= status.size or not data  # nothing: a hole up to the end
            self._restart_as = FileEvent.TRUNCATED
            self._answered()
            self.wake()

    def answer_differs(self, turn: int, status: Status, first: bytes, now: float) -> None:
        """The file is shorter than what was received of it, or holds something else."""
        with self._lock:
            if turn != self._turn or self._is_waiting:
                return
            self.status = status
            self._answered()
            is_prefix = status.size < self.offset and first == self._head[: status.size]
            if is_prefix and (self._shrunk_at is None or now - self._shrunk_at < SETTLE_S):
                self._shrunk_at = now if self._shrunk_at is None else self._shrunk_at
                self._ask_at = now + SETTLE_S / 4
                return
            if self._identity is not None and status.identity != self._identity:
                self._restart_as = FileEvent.REPLACED
            self._look_for_older(status)

    def _look_for_older(self, status: Status) -> None:
        """Reads what the path led to before, now that it leads to the file of `status`."""
        self._is_waiting = True
        turn = self._turn
        now_there = status.identity
        self._asker.find_older(self, self._question(0), now_there, lambda data: self._begin_anew(turn, data, now_there))

    def _begin_anew(self, turn: int, data: bytes | None, now_there: tuple[int, int]) -> None:
        """After the rest of the older file was read (None: it was not found)."""
        with self._lock:
            if turn != self._turn or not self._is_waiting:
                return
            self._is_waiting = False
            self._receive(data or b"")
            event = self._restart_as if data is None else FileEvent.ROTATED
            if self.offset:
                self._arrived.append(Arrived(offset=self.offset, event=event))
            self._restart_as = FileEvent.TRUNCATED
            self._is_there = True
            self.offset, self._head, self._tail, self._identity = 0, b"", b"", now_there
            self.left_out, self._is_mid_line = 0, False
            self._shrunk_at = None
            self._ask()
            self.wake()

    def _is_long_text(self, status: Status, history: int) -> bool:
        """Whether the head was read of a log of lines that is longer than what is wanted of it."""
        return self.offset >= KEPT_HEAD_BYTES and status.size - self.offset > 2 * history and b"\0" not in self._head

    def _leave_out(self, offset: int) -> None:
        """Goes on at the first line after `offset`."""
        self.left_out = offset - self.offset
        self.offset, self._tail = offset, b""
        self._is_mid_line = True
        self._ask()
        self.wake()

    def _answered(self) -> None:
        self.is_answered = self.was_answered = True

    def _receive(self, data: bytes) -> None:
        if not data:
            return
        if self._is_mid_line:
            line_end = data.find(b"\n") + 1 or len(data)
            self._is_mid_line = not data[:line_end].endswith(b"\n")
            self._tail = data[:line_end][-TAIL_BYTES:]
            self.offset += line_end
            data = data[line_end:]
            if not data:
                return
        if self.offset < HEAD_BYTES and len(self._head) == self.offset:
            self._head += data[: HEAD_BYTES - self.offset]
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        self._arrived.append(Arrived(data, self.offset))
        self._queued += len(data)
        self.offset += len(data)

    # -- how much may come -------------------------------------------------------------------------------------

    def set_window(self, size: int, allowance: int | None = None) -> None:
        """How much may be on its way or wait here, and how much may be granted until this is called again."""
        with self._lock:
            self._window, self._allowance = size, allowance
            self._allow()

    @property
    def is_behind(self) -> bool:
        """Whether there is more in the file than was received."""
        return self.status is not None and not self.error and self.status.size > self.offset

    def _allow(self) -> None:
        room = self._window - self._credit - self._queued
        if self._allowance is not None:
            room = min(room, self._allowance)
        if self._is_up and self._ask_at is None and room > 0 and (self._allowance or room >= self._window // 2):
            if self._allowance is not None:
                self._allowance -= room
            self._credit += room
            self._asker.grant(self, room)

    def _question(self, credit: int) -> Question:
        return Question(self._turn, self.offset, credit, self._head, self._tail, self._identity)

    def _ask(self) -> None:
        self._ask_at = None
        self._turn += 1
        self._credit = max(self._window - self._queued, 0)
        self._asker.ask(self, self._question(self._credit))
