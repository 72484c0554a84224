"""One connection: the ssh process, the reader that it starts there, and packets back and forth, never blocking."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
from collections import deque
from importlib import resources

from trainmon.tails.clock import Clock
from trainmon.tails.ssh.command import quiet_environment
from trainmon.tails.ssh.frame import BadAnswer, Frame, FrameBuffer
from trainmon.tails.ssh.trouble import Way, last_line

READY_WITHIN_S = 30.0
_MAX_NOISE_BYTES = 1 << 20  # what a login shell's start-up files may print
_MAX_SAID_BYTES = 16 << 10
_READ_BYTES = 1 << 18
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031
_READERS = {
    "python": ("far_files.py", "far_python.py"),
    "shell": ("far_relay.sh", "far_probe.sh", "far_list.sh", "far_shell.sh"),
}


class LinkLostError(Exception):
    """The connection is over. `reason`: one line; `is_stuck`: it is there, and nothing comes."""

    def __init__(self, reason: str, *, is_stuck: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_stuck = is_stuck


class Link:
    """Runs `argv`, which must give a shell there that reads a program from stdin (`command.START_THERE`).

    `side` is "python" or "shell" once the reader runs, "" before.
    """

    def __init__(
        self, argv: list[str], clock: Clock, ready_within_s: float = READY_WITHIN_S, way: Way | None = None
    ) -> None:
        self.side = ""
        self.heard_at = clock.monotonic()
        self.read_bytes = 0
        self.written_bytes = 0
        self._clock = clock
        self._began = clock.monotonic()
        self._ready_within_s = ready_within_s
        self._way = way
        self._frames = FrameBuffer()
        self._spare = bytearray(_READ_BYTES)  # what comes behind a long packet
        self._noise = bytearray()
        self._said = bytearray()
        self._out: deque[bytes] = deque()
        self._nonce = secrets.token_hex(12)
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in the terminal is not for it
                env=quiet_environment(),
            )
        except OSError as error:
            raise LinkLostError(f"ssh cannot be run here ({error.strerror})") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._in_fd = self._process.stdout.fileno()
        self._err_fd = self._process.stderr.fileno()
        self._out_fd = self._process.stdin.fileno()
        self._fds: set[int] = {self._in_fd, self._err_fd, self._out_fd}
        for fd in self._fds:
            os.set_blocking(fd, False)
        _widen(self._in_fd)
        start = f"nonce={self._nonce}\n".encode() + _program("far_start.sh")
        self.send(b"%d\n" % len(start) + start)

    def send(self, data: bytes) -> None:
        """Sends `data`, as soon as there is room."""
        self._out.append(data)

    def pump(self, timeout_s: float, wake_fd: int) -> list[Frame]:
        """What came; waits up to `timeout_s`, or until `wake_fd` can be read. Raises LinkLostError, BadAnswer."""
        self._write()
        poller = select.poll()  # not select: a descriptor may be above 1023
        for fd in (self._in_fd, self._err_fd):
            if fd in self._fds:
                poller.register(fd, select.POLLIN)
        poller.register(wake_fd, select.POLLIN)
        if self._out and self._out_fd in self._fds:
            poller.register(self._out_fd, select.POLLOUT)
        readable = {fd for fd, _ in poller.poll(1000 * timeout_s)}
        if self._out_fd in readable:
            self._write()
        if self._err_fd in readable:
            self._listen_to_errors()
        frames = self._read() if self._in_fd in readable else []
        if not self.side and self._clock.monotonic() - self._began > self._ready_within_s:
            raise LinkLostError(self._last_words(f"no answer within {self._ready_within_s:.0f} s"), is_stuck=True)
        return frames

    def close(self) -> None:
        """Ends the connection; the reader there ends with it."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self._fds.clear()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self) -> list[Frame]:
        rest = self._frames.rest()
        try:
            data: bytes | memoryview
            if rest is None:
                count = len(data := os.read(self._in_fd, _READ_BYTES))
            else:
                count = os.readv(self._in_fd, [rest, self._spare])
                data = memoryview(self._spare)[: max(count - len(rest), 0)]
                self._frames.filled(count - len(data))
        except BlockingIOError:
            return []
        if not count:
            raise LinkLostError(self._how_it_ended())
        self.read_bytes += count
        self.heard_at = self._clock.monotonic()
        if not self.side:
            data = self._after_noise(bytes(data))
            if not self.side:
                return []
        self._frames.add(data)
        return list(self._frames.take())

    def _after_noise(self, data: bytes) -> bytes:
        """Skips what start-up files print, up to the line with which the reader begins."""
        self._noise += data
        mark = f"trainmon-ready {self._nonce} ".encode()
        place = self._noise.find(mark)
        end = self._noise.find(b"\n", place) if place >= 0 else -1
        if end < 0:
            if len(self._noise) > _MAX_NOISE_BYTES:
                raise LinkLostError("its login shell prints without end before it runs anything")
            return b""
        side = bytes(self._noise[place + len(mark) : end])
        rest = bytes(self._noise[end + 1 :])
        self._noise.clear()
        if side.decode("ascii", "replace") not in _READERS:
            raise BadAnswer("it began with something else than the reader")
        self.side = side.decode()
        program = b"".join(map(_program, _READERS[self.side]))
        self.send(b"%d\n" % len(program) + program)
        return rest

    def _listen_to_errors(self) -> None:
        try:
            data = os.read(self._err_fd, 4096)
        except BlockingIOError:
            return
        if not data:
            self._fds.discard(self._err_fd)
        self._said += data
        del self._said[:-_MAX_SAID_BYTES]

    def _how_it_ended(self) -> str:
        self._process.terminate()
        try:
            status = self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        for _ in range(8):
            if self._err_fd in self._fds:
                self._listen_to_errors()
        if self.side:
            return self._last_words("the connection was closed")
        return self._last_words(f"ssh ended with status {status} before the reader ran")

    def _last_words(self, default: str) -> str:
        return last_line(bytes(self._said), self._way) or default

    # -- writing -----------------------------------------------------------------------------------------------

    def _write(self) -> None:
        while self._out and self._out_fd in self._fds:
            data = b"".join(self._out) if len(self._out) > 1 else self._out[0]
            self._out.clear()
            try:
                done = os.write(self._out_fd, data)
            except BlockingIOError:
                done = 0
            except OSError:  # it is over: reading tells why
                self._fds.discard(self._out_fd)
                return
            self.written_bytes += done
            if done < len(data):
                self._out.append(data[done:])
                return


def _program(name: str) -> bytes:
    """A part of a program for the far side, where nothing of this project can be imported."""
    text = resources.files("trainmon.tails.ssh").joinpath(name).read_bytes()
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"from trainmon."))


def _widen(fd: int) -> None:
    """A larger pipe, so that fewer switches are needed while much comes."""
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
