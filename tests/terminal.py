"""A real pseudo-terminal with a program in it: what it shows, what it is sent, how it leaves the terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

PATIENCE_S = 90.0  # machines that run tests are slow; a program that works never needs this long
_MODE = re.compile(rb"\x1b\[\?([\d;]+)([hl])")


class Terminal:
    """Runs `command` in a new terminal of `columns` x `rows`, as a shell in a window would.

    `stdin`: a file descriptor that is the program's standard input in place of the terminal; `environment`: variables
    beside those of the test; `is_own`: whether the terminal is the program's own, whose end it is sent a signal for.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        rows: int = 24,
        stdin: int | None = None,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        is_own: bool = True,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.output = b""
        # The program's end stays open here too, so that its settings can be read when the program is gone.
        self._master, self._slave = os.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.settings_before = termios.tcgetattr(self._slave)
        inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        self._program = subprocess.Popen(
            command,
            stdin=self._slave if stdin is None else stdin,
            stdout=self._slave,
            stderr=self._slave,
            env={**inherited, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(environment or {})},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=self._take_terminal if is_own else None,
        )

    def _take_terminal(self) -> None:
        fcntl.ioctl(self._slave, termios.TIOCSCTTY, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._program.poll() is None:
            self._program.kill()
            self._program.wait()
        if self._master >= 0:
            os.close(self._master)
        os.close(self._slave)

    def close_window(self) -> int:
        """Takes the terminal away, as a window or connection that is closed; the program's exit status."""
        os.close(self._master)
        self._master = -1
        return self._program.wait(PATIENCE_S)

    def end_of(self) -> int:
        """Waits until the program has ended, and reads nothing; its exit status."""
        return self._program.wait(PATIENCE_S)

    @property
    def text(self) -> str:
        """The screen as it is now, a line a row."""
        return "\n".join(self._screen.display)

    @property
    def title(self) -> str:
        """The window's title, "" while no program has set one."""
        return str(self._screen.title)

    def settle(self, quiet_s: float = 0.15, patience_s: float = 2.0) -> None:
        """Reads until nothing has come for `quiet_s`; at most for `patience_s`, for screens that count seconds."""
        deadline = time.monotonic() + patience_s
        while self._read(quiet_s) and time.monotonic() < deadline:
            continue

    @property
    def settings(self) -> list[object]:
        """The terminal's settings now (line mode, echo, ...)."""
        return list(termios.tcgetattr(self._slave))

    def send(self, keys: str) -> None:
        """Types `keys`."""
        os.write(self._master, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the program."""
        self._program.send_signal(number)

    def resize(self, columns: int, rows: int) -> None:
        """Changes the size of the window."""
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.signal(signal.SIGWINCH)

    def wait_for(self, what: str) -> None:
        """Waits until the screen shows a match of the regular expression `what`."""
        self._wait(lambda: re.search(what, self.text) is not None, f"{what!r} on the screen")

    def read_for(self, seconds: float) -> tuple[int, int]:
        """Reads what comes in `seconds`: how many bytes, and in how many bursts with a pause before them."""
        began, bursts = len(self.output), 0
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._read(min(left, 0.02)):
                bursts += 1
                while self._read(0.02):
                    pass
        return len(self.output) - began, bursts

    def wait_until_still(self) -> None:
        """Waits until nothing more is drawn than ages that grow."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read_for(1.0)[0] > 500:
            assert time.monotonic() < deadline, f"it never comes to rest:\n{self.text}"

    def wait_exit(self) -> int:
        """Waits until the program has ended; its exit status (negative: the signal that ended it)."""
        self._wait(lambda: self._program.poll() is not None, "the program to end")
        self._read(0.1)
        return self._program.wait()

    def modes_left_on(self) -> set[str]:
        """Private modes that the program switched on and not off again (``1049``: the alternate screen).

        A hidden cursor counts as ``25``.
        """
        state: dict[str, bool] = {}
        for modes, switch in _MODE.findall(self.output):
            for mode in modes.decode().split(";"):
                state[mode] = (switch == b"h") != (mode == "25")
        return {mode for mode, on in state.items() if on and mode != "7"}

    def _wait(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {PATIENCE_S:g} s for {what}; the screen shows:\n{self.text}")
            if self._program.poll() is not None and not self._read(0.1) and not happened():
                raise AssertionError(f"the program ended ({self._program.returncode}) without {what}:\n{self.text}")
            self._read(0.1)

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if not ready:
            return False
        with contextlib.suppress(OSError):
            data = os.read(self._master, 65536)
            self.output += data
            # pyte trips over the Kitty keyboard protocol's sequences, which change nothing that is shown.
            self._stream.feed(re.sub(rb"\x1b\[[<>=?][\d;]*u", b"", data))
            return bool(data)
        return False
