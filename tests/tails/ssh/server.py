"""The loopback sshd, with what these tests do to it: far sides of all kinds, stalls, and what runs there."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sshd import Sshd
from trainmon.tails.clock import SystemClock
from trainmon.tails.ssh.address import Address, RemotePath
from trainmon.tails.ssh.follower import RemoteFollower
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.hosts import Hosts
from trainmon.tails.ssh.options import SshOptions

CLOCK = SystemClock()
ADDRESS = Address(Sshd.HOST)
_COREUTILS = ("env", "dd", "stat", "head", "tail", "cat", "sleep", "date", "timeout", "readlink")


def bare_path(home: Path, shell: str = "sh") -> str:
    """A directory with what POSIX sh and coreutils give, and nothing else: no python3."""
    place = home / "bin"
    place.mkdir(exist_ok=True)
    for name, target in (("sh", shell), *((name, name) for name in _COREUTILS)):
        found = shutil.which(target)
        assert found is not None
        (place / name).symlink_to(found)
    return str(place)


@contextmanager
def server(home: Path, *options: str, path: str = "") -> Iterator[Sshd]:
    """An sshd with further lines of configuration; `path`: where programs are looked for over there.

    Its shells skip the start-up files of whoever runs the tests: a session that is killed in them may leave locks.
    """
    made = Sshd(home, (f"SetEnv SHLVL=9{f' PATH={path}' if path else ''}", *options))
    made.start()
    try:
        yield made
    finally:
        made.drop_connections(signal.SIGCONT)
        made.stop()


def options_for(sshd: Sshd, **more: object) -> SshOptions:
    """What a user would pass to reach it."""
    return SshOptions(config_file=str(sshd.config), **more)  # type: ignore[arg-type]


def remote(path: Path | str) -> RemotePath:
    """A path over there."""
    return RemotePath(ADDRESS, str(path))


def readers(sshd: Sshd) -> list[int]:
    """The readers that run over there."""
    found = []
    for pid in sshd.connections():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"trainmon-reader" in command or command.startswith(b"sh\0-c\0read -r size"):
            found.append(pid)
    return found


class Collector:
    """Takes what a follower gives: the bytes of the file as it is now, and of those before it."""

    def __init__(self, follower: RemoteFollower, host: Host) -> None:
        self.follower = follower
        self.host = host
        self.data = b""
        self.events: list[str] = []
        self.older: list[bytes] = []

    def take(self) -> bool:
        """One poll; True when something came."""
        update = self.follower.poll(1 << 20)
        for event in update.events:
            self.events.append(event.value)
            if event.value in ("truncated", "replaced"):
                self.older.append(self.data)
                self.data = b""
        if update.data:
            assert update.offset == len(self.data), "a byte was lost or came twice"
            self.data += update.data
        return bool(update.data or update.events)

    def until(self, expected: bytes, limit_s: float = 30.0) -> None:
        """Polls until the bytes are `expected`."""
        end = CLOCK.monotonic() + limit_s
        while self.data != expected:
            if not self.take():
                CLOCK.sleep(0.005)
            if CLOCK.monotonic() > end:
                got, wanted = self.data, expected
                at = next(
                    (i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted))
                )
                raise AssertionError(
                    f"{len(got)} of {len(wanted)} bytes, the same up to {at}; {self.events}; {self.host.problem!r}"
                )

    def until_true(self, what: object, limit_s: float = 30.0) -> None:
        """Polls until `what()` is true."""
        assert callable(what)
        end = CLOCK.monotonic() + limit_s
        while not what():
            if not self.take():
                CLOCK.sleep(0.005)
            assert CLOCK.monotonic() < end, (self.events, self.host.problem, len(self.data))


class Near:
    """Connections of ours, with a socket directory of their own."""

    def __init__(self, options: SshOptions, address: Address = ADDRESS) -> None:
        self.hosts = Hosts(options, CLOCK)
        self.address = address

    @property
    def host(self) -> Host:
        return self.hosts.host(self.address)

    def follow(self, path: Path | str) -> Collector:
        return Collector(RemoteFollower(RemotePath(self.address, str(path)), self.host, CLOCK), self.host)

    def close(self) -> None:
        masters = [host.master for host in self.hosts.known]
        self.hosts.close()
        for master in masters:
            master.renew(is_stuck=True)  # ends the shared connection too
