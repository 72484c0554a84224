"""One host: a thread that keeps the connection, asks it what it is asked for, and connects again when it is lost."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import select
import stat
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from trainmon.tails.clock import Clock
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.answer import Entry, Piece
from trainmon.tails.ssh.ask import Ask, AskListing, AskPiece, HostDownError
from trainmon.tails.ssh.command import START_THERE
from trainmon.tails.ssh.flow import MOST_BYTES, Flow
from trainmon.tails.ssh.frame import BadAnswer, Frame
from trainmon.tails.ssh.in_turn import MOST_PIECES, MOST_SMALL, InTurn
from trainmon.tails.ssh.link import READY_WITHIN_S, Link, LinkLostError
from trainmon.tails.ssh.master import Master
from trainmon.tails.ssh.older import OlderFile
from trainmon.tails.ssh.remote_file import Question, RemoteFile
from trainmon.tails.ssh.shell_side import WINDOW_BYTES, ShellSide
from trainmon.tails.ssh.side import PythonSide, Side
from trainmon.tails.text import printable

T = TypeVar("T")

BEAT_S = 2.0  # how often the reader there gives a sign of life
UNSURE_S = 2.0 * BEAT_S + 0.5
DEAD_S = 8.0
GIVE_UP_S = 20.0
RETRY_FIRST_S = 1.0
RETRY_LAST_S = 60.0
RETRY_STUCK_S = 300.0  # a reader that hangs on a file system there may stay: not many of them
STABLE_S = 30.0  # a connection that lasted so long was a good one
_ASK_BASE = 0x10000000
_IDLE_S = 0.5
_MOST_SKEW_S = 1e10
_SOONEST_S = 8.0
_TIMES_LONGER = 5.0


class Host:
    """The connection to one host, and what is watched there. Any thread may call the public methods; none blocks."""

    def __init__(self, master: Master, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self.address: Address = master.address
        self.master = master
        self.skew_s = 0.0  # of the clock there, against ours
        self.read_bytes = 0
        self.connections = 0
        self.side = ""
        self.clock = clock
        self._jitter = jitter
        self._files: dict[int, RemoteFile] = {}
        self._asks: dict[int, Ask[Any]] = {}
        self._waiting: list[Ask[Any]] = []
        self._next = 0
        self._link: Link | None = None
        self._speaker: Side | None = None
        self._flow = Flow(master.options.rate)
        self._small = InTurn(self._put, MOST_SMALL)
        self._pieces = InTurn(self._put, MOST_PIECES, master.options.rate)
        self._reason = ""  # why there is no connection
        self._silent: dict[bytes, float] = {}
        self.hanging = ""  # the file systems there that do not answer, one line
        self._down_since: float | None = None
        self._connected_at = 0.0
        self._ready_within_s = READY_WITHIN_S
        self._was_up = False
        self._retry_s = RETRY_FIRST_S
        self._retry_at = 0.0
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._is_stopping = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"trainmon-ssh {self.address.name}", daemon=True)
        self._thread.start()

    # -- for any thread ----------------------------------------------------------------------------------------

    def watch(self, path: str, wake: Callable[[], None]) -> RemoteFile:
        """Watches the file at `path`; `wake` is called, in the host's thread, when something new came."""
        with self._lock:
            self._next += 1
            file = RemoteFile(self._next, path, self, wake, history=self.master.options.history_bytes)
        self._do(lambda: self._add(file))
        return file

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        self._do(lambda: self._remove(file))

    def ask_for(self, question: Ask[T]) -> Future[T]:
        """Asks once the connection is there; the answer fails with HostDownError when there is none."""
        self._do(lambda: self._put(question))
        return question.answer

    def ask_in_turn(self, question: Ask[T]) -> Future[T]:
        """As `ask_for`, for history: few are on their way at once, and of pieces no more in a second than the set rate.
        What is new and the signs of life come between them."""
        turns = self._pieces if isinstance(question, AskPiece) and question.length else self._small
        self._do(lambda: turns.add(question))
        return question.answer

    @property
    def is_up(self) -> bool:
        """Whether the reader there runs and was heard lately."""
        link = self._link
        return link is not None and bool(link.side) and self.silent_s < DEAD_S

    @property
    def silent_s(self) -> float:
        """Seconds since anything came."""
        link = self._link
        return self.clock.monotonic() - link.heard_at if link is not None else float("inf")

    @property
    def has_failed(self) -> bool:
        """Whether there is no connection, and an attempt to make one has failed."""
        return bool(self._reason) and not self.is_up

    @property
    def problem(self) -> str:
        """What is wrong with the host, one line: its connection, or a file system there that does not answer."""
        return self.connection_problem or self.hanging

    def problem_of(self, path: str) -> str:
        """What is wrong for the file at `path`: the same, but for file systems that it does not lie on."""
        is_there = any(path.startswith(f"{os.fsdecode(mount)}/") for mount in self._silent)
        return self.connection_problem or (self.hanging if is_there else "")

    @property
    def connection_problem(self) -> str:
        """What is wrong with the connection, one line; "" when all is well, or it is not yet known."""
        link, down_since = self._link, self._down_since
        if link is not None and link.side:
            silent_s = self.silent_s
            if silent_s < UNSURE_S:
                return ""
            state = "the connection does not answer" if silent_s >= DEAD_S else "nothing was heard"
            return f"{self.address.name}: {state} for {silent_s:.0f} s; what is shown is at least that old"
        if not self._reason:
            return ""
        reason = printable(self._reason, 300)
        if self._was_up and down_since is not None:
            reason = f"lost {self.clock.monotonic() - down_since:.0f} s ago, connecting again: {reason}"
        return self.master.explain(reason)

    def stop(self) -> None:
        """Ends the connection and the thread; does not wait."""
        self._is_stopping = True
        self._wake()

    def join(self, timeout_s: float) -> None:
        """Waits for the thread to end."""
        self._thread.join(timeout_s)

    # -- what a `RemoteFile` asks for ------------------------------------------------------------------------------

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Sends a question; on the host's thread."""
        if self._speaker is not None:
            self._speaker.ask(file, question)

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets the far side send more; from any thread."""
        self._do(lambda: self._grant(file, amount))

    def find_older(
        self, file: RemoteFile, question: Question, present: tuple[int, int], done: Callable[[bytes | None], None]
    ) -> None:
        """Reads the rest of what the file was before that of `present` took its place, when it lies beside it."""
        OlderFile(file.path, question, present, self._ask_piece, self._ask_entries, done).begin()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _do(self, command: Callable[[], None]) -> None:
        self._commands.put(command)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is woken already; closed: it has ended
            os.write(self._wake_out, b"w")

    def _run(self) -> None:
        while not self._is_stopping:
            try:
                self._connect()
                self._serve()
            except LinkLostError as lost:
                self._lose(self.master.with_cause(lost.reason), is_stuck=lost.is_stuck)
            except BadAnswer as error:
                self._lose(f"{error}: the reader there, or its login shell, is not what it should be")
            except Exception as error:  # the top of this worker: it says so, and tries again
                self._lose(f"internal error, please report it: {type(error).__name__}: {error}")
            self._pause()
        self._close_link()
        self._fail_all(HostDownError(f"{self.address.name}: ended"))
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _connect(self) -> None:
        if problem := self.master.prepare():
            raise LinkLostError(problem)
        if self._is_stopping:
            return
        began = self.clock.monotonic()
        self._link = link = Link(self.master.argv(START_THERE), self.clock, self._ready_within_s, self.master.way)
        self._ready_within_s = READY_WITHIN_S
        while not link.side and not self._is_stopping:
            link.pump(_IDLE_S, self._wake_in)
            self._drain_wakes()
            self._obey()
        send = link.send
        self._speaker = (
            PythonSide(send, self._files) if link.side == "python" else ShellSide(send, self._files, self.clock)
        )
        self.side = link.side
        self._flow.most_bytes = WINDOW_BYTES if link.side == "shell" else MOST_BYTES
        self.connections += 1
        self._connected_at = self.clock.monotonic()
        # Once it is known how long a connection takes, one that hangs is told sooner.
        self._ready_within_s = min(max(_SOONEST_S, _TIMES_LONGER * (self._connected_at - began)), READY_WITHIN_S)
        waiting, self._waiting = self._waiting, []
        for file in list(self._files.values()):
            self._speaker.watch(file)
            file.connected()
        for question in waiting:
            self._put(question)

    def _serve(self) -> None:
        assert self._speaker is not None
        link = self._link
        assert link is not None
        due = 0.0
        while not self._is_stopping:
            now = self.clock.monotonic()
            for frame in link.pump(min(max(due - now, 0.0), _IDLE_S), self._wake_in):
                self._take(frame)
            self._drain_wakes()
            self._obey()
            now = self.clock.monotonic()
            self.read_bytes = link.read_bytes
            due = self._speaker.beat(now)
            self._silent = self._speaker.hanging(now)
            self.hanging = self._words_for(self._silent)
            for file in list(self._files.values()):
                file.tick(now)
            self._small.send(now)
            self._pieces.send(now)
            self._flow.share(self._files.values(), link.read_bytes, now)
            if self._reason and link.heard_at > self._connected_at:
                self._reason, self._was_up, self._down_since = "", True, None
            self._was_up = True
            if now - link.heard_at > GIVE_UP_S:
                raise LinkLostError(f"it has not answered for {GIVE_UP_S:.0f} s", is_stuck=True)

    def _words_for(self, hanging: dict[bytes, float]) -> str:
        """File systems there that do not answer, one line."""
        if not hanging:
            return ""
        names = ", ".join(printable(os.fsdecode(mount), 100) for mount in sorted(hanging)[:3])
        names += ", ..." if len(hanging) > 3 else ""
        since_s = max(hanging.values())
        return (
            f"{self.address.name}: {names} there has not answered for {since_s:.0f} s; what lies on it waits,"
            " all else goes on (is its server up?)"
        )

    def _take(self, frame: Frame) -> None:
        assert self._speaker is not None
        if self._speaker.take(frame, self.clock.monotonic()):
            return
        question = self._asks.get(frame.number)
        if question is not None:
            if question.take(frame):
                del self._asks[frame.number]
        elif frame.kind == "h":
            self._learn_clock(frame.payload)

    def _learn_clock(self, payload: bytes) -> None:
        """The clock there against ours, as far as the answer makes sense."""
        try:
            skew_s = float(payload[:32]) - self.clock.wall()
        except ValueError:
            return
        if abs(skew_s) < _MOST_SKEW_S:
            self.skew_s = skew_s

    def _lose(self, reason: str, *, is_stuck: bool = False) -> None:
        now = self.clock.monotonic()
        lasted = self._speaker is not None and now - self._connected_at >= STABLE_S
        if self._speaker is not None or self._down_since is None:
            self._down_since = now
        self._reason = reason
        was_up = self._speaker is not None
        self._close_link()
        self.master.renew(is_stuck=is_stuck)
        if lasted:
            self._retry_s = RETRY_FIRST_S
        self._retry_at = now + self._retry_s * (0.5 + self._jitter())
        self._retry_s = min(2 * self._retry_s, RETRY_STUCK_S if is_stuck else RETRY_LAST_S)
        if not was_up:
            self._fail_all(HostDownError(self.problem))
        for file in list(self._files.values()):
            file.disconnected()
            file.wake()

    def _close_link(self) -> None:
        link, self._link = self._link, None
        self._speaker = None
        self._silent, self.hanging = {}, ""
        if link is not None:
            link.close()
        # What was asked is asked again: nothing of it has an effect there.
        again, self._asks = list(self._asks.values()), {}
        self._waiting += [question for question in again if not question.answer.done()]

    def _fail_all(self, error: HostDownError) -> None:
        waiting, self._waiting = self._waiting, []
        for question in waiting:
            question.fail(error)

    def _pause(self) -> None:
        poller = select.poll()
        poller.register(self._wake_in, select.POLLIN)
        while not self._is_stopping and (left := self._retry_at - self.clock.monotonic()) > 0:
            poller.poll(1000 * min(left, _IDLE_S))
            self._drain_wakes()
            self._obey()
            for file in list(self._files.values()):
                file.wake()  # time itself is news: what is known grows old

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_in, 4096):
                pass

    def _obey(self) -> None:
        while not self._commands.empty():
            self._commands.get()()

    # -- commands, on the thread -----------------------------------------------------------------------------------

    def _add(self, file: RemoteFile) -> None:
        self._files[file.number] = file
        if self._speaker is not None:
            self._speaker.watch(file)
            file.connected()

    def _remove(self, file: RemoteFile) -> None:
        self._files.pop(file.number, None)
        file.disconnected()
        if self._speaker is not None:
            self._speaker.unwatch(file)

    def _grant(self, file: RemoteFile, amount: int) -> None:
        if self._speaker is not None:
            self._speaker.grant(file, amount)

    def _put(self, question: Ask[Any]) -> None:
        if self._speaker is None or self._link is None:
            self._waiting.append(question)
            return
        if isinstance(question, AskPiece):
            question.is_shell = self.side == "shell"
        self._next += 1
        place = _ASK_BASE + self._next
        self._asks[place] = question
        self._link.send(question.line(place))

    def _ask_piece(self, path: bytes, offset: int, length: int, done: Callable[[Piece], None]) -> None:
        question = AskPiece(path, offset, length)
        question.answer.add_done_callback(lambda answer: done(_or_nothing(answer)))
        self._put(question)

    def _ask_entries(self, path: bytes, done: Callable[[list[Entry]], None]) -> None:
        question = AskListing(path)

        def take(answer: Future[Any]) -> None:
            entries = [] if answer.exception() else answer.result().entries
            done([entry for entry in entries if stat.S_ISREG(entry.status.mode or 0)])

        question.answer.add_done_callback(take)
        self._put(question)


def _or_nothing(answer: Future[Piece]) -> Piece:
    return Piece(5) if answer.exception() else answer.result()
