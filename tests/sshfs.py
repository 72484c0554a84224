"""A real sshd on a loopback port with keys of its own, and sshfs mounts through it.

Nothing of the user's is read or written: keys, known_hosts and both configurations lie in a directory of the test.
Where sshd, sshfs or /dev/fuse are missing the test is skipped and says so; with TRAINMON_REQUIRE_SERVERS=1 it fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

_SSHD_PLACES = ("/usr/sbin", "/usr/local/sbin", "/sbin")
_START_S = 20.0


def server_lacking(reason: str) -> NoReturn:
    """Ends the test for want of a server: a skip, or a failure where TRAINMON_REQUIRE_SERVERS says so."""
    if os.environ.get("TRAINMON_REQUIRE_SERVERS", "").lower() in ("1", "true"):
        pytest.fail(f"{reason}; TRAINMON_REQUIRE_SERVERS forbids to skip this", pytrace=False)
    pytest.skip(reason)


def program(name: str, package: str) -> str:
    """Where `name` is; ends the test where it is not."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SSHD_PLACES))
    return shutil.which(name, path=places) or server_lacking(f"{name} is not installed (Debian: {package})")


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Sshd:
    """An sshd that listens on 127.0.0.1:`port`. `config`: what to give the client (`ssh -F config trainmon-test`).

    The client's configuration knows the host as `HOST`: port, key, known_hosts, batch mode; nothing else is asked.
    `options`: further lines of sshd_config, before ours, so that they win (for sshd the first value counts).
    """

    HOST = "trainmon-test"

    def __init__(self, home: Path, options: Sequence[str] = ()) -> None:
        self._program = program("sshd", "openssh-server")
        keygen = program("ssh-keygen", "openssh-client")
        self.home = home
        self.port = free_port()
        self.key = home / "id_ed25519"
        self.host_key = home / "host_ed25519"
        self.authorized_keys = home / "authorized_keys"
        self.known_hosts = home / "known_hosts"
        self.config = home / "ssh_config"
        self.log = home / "sshd.log"
        self._options = tuple(options)
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        for key in (self.key, self.host_key):
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-C", "trainmon-test", "-f", str(key)], check=True)
        self.authorized_keys.write_text(self.key.with_suffix(".pub").read_text())
        self._write_configurations()

    @property
    def pid(self) -> int:
        """Of the listening process; every connection has further ones in its process group."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and did not end."""
        return self._process is not None and self._process.poll() is None

    def ssh_command(self, *remote: str) -> list[str]:
        """An ssh command line that runs `remote` over there."""
        return [program("ssh", "openssh-client"), "-F", str(self.config), self.HOST, *remote]

    def start(self) -> None:
        """Starts it and waits until it answers."""
        if os.geteuid() == 0:  # where root's sshd separates privileges; Debian makes it when the service starts
            Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
        # -D and a session of its own: whoever is left of it can be ended by its group, and nothing else is hit.
        command = [self._program, "-D", "-f", str(self.home / "sshd_config"), "-E", str(self.log)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if not self.is_running:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        said = self.log.read_text(errors="replace") if self.log.exists() else ""
        self.stop()
        server_lacking(f"sshd does not start: {said.strip()[-300:] or 'it says nothing'}")

    def connections(self) -> list[int]:
        """The processes that serve a connection: children of the listening one, and theirs."""
        return _descendants(self.pid) if self.is_running else []

    def drop_connections(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends (or stops, continues) every connection; the listener stays."""
        for pid in self.connections():
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                continue

    def stop(self) -> None:
        """Ends the listener and every connection, as a host that goes down."""
        if self._process is None:
            return
        self.drop_connections()
        self._process.kill()
        self._process.wait()
        self._process = None

    def _write_configurations(self) -> None:
        ours = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.host_key}",
            f"AuthorizedKeysFile {self.authorized_keys}",
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
            "PrintMotd no",
            "MaxStartups 100",
            "Subsystem sftp internal-sftp",
        ]
        (self.home / "sshd_config").write_text("\n".join((*self._options, *ours)) + "\n")
        host_key = " ".join(self.host_key.with_suffix(".pub").read_text().split()[:2])
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {host_key}\n")
        client = [
            f"Host {self.HOST}",
            "    HostName 127.0.0.1",
            f"    Port {self.port}",
            f"    IdentityFile {self.key}",
            "    IdentitiesOnly yes",
            "    IdentityAgent none",
            f"    UserKnownHostsFile {self.known_hosts}",
            "    GlobalKnownHostsFile /dev/null",
            "    StrictHostKeyChecking yes",
            "    BatchMode yes",
            "    ControlPath none",
        ]
        self.config.write_text("\n".join(client) + "\n")


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One that is up for the whole session: do not stop it; make a `Sshd` of your own for that."""
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    server.stop()


def require_fuse() -> str:
    """The program that mounts for an ordinary user; ends the test where FUSE does not work."""
    mounter = program("fusermount3", "fuse3")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        server_lacking(f"/dev/fuse cannot be used ({error.strerror})")
    return mounter


def unmount(point: Path) -> None:
    """Takes the FUSE mount at `point` away, also when it hangs or is gone."""
    subprocess.run([program("fusermount3", "fuse3"), "-u", "-z", str(point)], check=False, capture_output=True)


@contextmanager
def sshfs_mount(server: Sshd, remote: Path, point: Path, options: Sequence[str] = ()) -> Iterator[Path]:
    """`remote` through `server`, mounted at `point`; `options` are sshfs's own (``-o``)."""
    require_fuse()
    point.mkdir(parents=True, exist_ok=True)
    command = [program("sshfs", "sshfs"), "-F", str(server.config), f"{server.HOST}:{remote}", str(point)]
    for option in options:
        command += ["-o", option]
    # Its daemon would keep a pipe open: what it says goes to a file.
    said = point.with_name(f"{point.name}.sshfs.log")
    with said.open("wb") as log:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60, check=False)
    if done.returncode != 0:
        server_lacking(f"sshfs does not mount: {said.read_text(errors='replace').strip()[-300:]}")
    try:
        yield point
    finally:
        unmount(point)


def _descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    open_ = [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found += children
        open_ += children
    return found
