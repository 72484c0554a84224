"""What is said to the reader there, and what its packets mean for the files that are watched.

`PythonSide` talks to a reader that watches by itself and sends what is new; `shell_side.ShellSide` does the same over
one that only answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trainmon.tails.ssh.answer import Status, data_of, difference_of, silence_of, stat_or_errno
from trainmon.tails.ssh.frame import Frame, word
from trainmon.tails.ssh.remote_file import Question, RemoteFile

Send = Callable[[bytes], None]

PING_S = 10.0


class Side(Protocol):
    """The interface of both."""

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        ...

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        ...

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        ...

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        ...

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        ...

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        ...

    def hanging(self, now: float) -> dict[bytes, float]:
        """The mounts there that do not answer, and for how long, s."""
        ...


class PythonSide:
    """A reader in Python."""

    def __init__(self, send: Send, files: dict[int, RemoteFile]) -> None:
        self._send = send
        self._files = files
        self._ping_at = 0.0
        self._silent_since: dict[bytes, float] = {}

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        self._send(b"w %d %s\n" % (file.number, word(file.path)))

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        self._send(b"u %d\n" % file.number)

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        self._send(b"r %d %s\n" % (file.number, question.words()))

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        self._send(b"g %d %d\n" % (file.number, amount))

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        if frame.kind == "Q":
            mount, silent_s = silence_of(frame.payload)
            self._silent_since.pop(mount, None)
            if silent_s:
                self._silent_since[mount] = now - silent_s
            return True
        if frame.kind not in "SDX":
            return False
        file = self._files.get(frame.number)
        if file is None:  # forgotten meanwhile
            return True
        if frame.kind == "D":
            file.answer_data(*data_of(frame.payload))
        elif frame.kind == "X":
            turn, status, first = difference_of(frame.payload)
            file.answer_differs(turn, status, first, now)
        else:
            answer = stat_or_errno(frame.payload)
            if isinstance(answer, Status):
                file.answer_stat(answer)
            else:
                file.answer_errno(answer)
        return True

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        if now >= self._ping_at:
            self._ping_at = now + PING_S
            self._send(b"p 0\n")
        return self._ping_at

    def hanging(self, now: float) -> dict[bytes, float]:
        """The mounts there that do not answer, and for how long, s."""
        return {mount: now - since for mount, since in self._silent_since.items()}
