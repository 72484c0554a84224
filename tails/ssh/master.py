"""The shared connection to a host (ssh's ControlMaster): the user's own when there is one, else one in a private place.

What needs an answer (password, passphrase, second factor, an unknown host key) is asked while this connection is made,
in the terminal, before any screen. Everything later goes through it and never asks.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tempfile
from pathlib import Path

from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.command import Resolved, command_line, quiet_environment, resolve
from trainmon.tails.ssh.options import SshOptions
from trainmon.tails.ssh.trouble import CUT, Way, explain, last_line

PERSIST_S = 60
PERSIST_ASKED_S = 600  # one that took a second factor is kept for the next command
_CHECK_S = 5.0
_CONNECT_S = 60.0
_LONGEST_SOCKET = 80  # a socket's path may have some 104 bytes, and ssh adds 17 while it makes it


class Master:
    """How to reach one host."""

    def __init__(self, address: Address, options: SshOptions) -> None:
        self.address = address
        self.options = options
        self.resolved = Resolved()
        self.is_ours = True
        self._is_resolved = False
        self._control: tuple[str, ...] = ()
        self._is_avoided = False

    def prepare(self) -> str:
        """Finds out which connection is shared; one line when ssh does not take the host. Blocks for a moment."""
        if not self._is_resolved:
            self.resolved = resolve(self.address, self.options)
            self.is_ours = not self._user_has_one()
            self._control = self._own_control(PERSIST_S) if self.is_ours else ()
            self._is_resolved = not self.resolved.problem
        return self.resolved.problem

    def argv(self, command: str) -> list[str]:
        """The words that run `command` there without asking anything."""
        control = ("-o", "ControlPath=none") if self._is_avoided else self._control
        return command_line(self.address, self.options, self.resolved, control, batch=True, command=command)

    @property
    def way(self) -> Way:
        """How the host is reached, by the user's configuration and options."""
        jump, proxy = self.resolved["proxyjump"], self.resolved["proxycommand"]
        hops = tuple(jump.split(",")) if jump not in ("", "none") else ()
        return Way(self.address.name, hops, has_proxy=proxy not in ("", "none"))

    def explain(self, reason: str) -> str:
        """One line: which host, what is wrong, what to do."""
        return explain(self.address, reason, self.options)

    def with_cause(self, reason: str) -> str:
        """`reason`, with what a jump host said where that is not known: of a connection that is to be shared, ssh
        throws it away. So another one is tried, which is not shared and runs nothing of ours. Blocks."""
        if not reason.endswith(CUT):
            return reason
        control = ("-o", "ControlPath=none")
        argv = command_line(self.address, self.options, self.resolved, control, batch=True, command="exit")
        try:
            return self._quietly(argv) or reason
        except OSError as error:
            return f"{reason} ({error.strerror})"

    def is_alive(self) -> bool:
        """Whether the shared connection is there (its process answers; the network is not asked)."""
        return self._tell("check")

    def connect(self) -> str:
        """Makes the shared connection without asking; "" when it is there, else what ssh said, one line."""
        return self._connect(batch=True)

    def ask(self) -> str:
        """Makes the shared connection, asking in the terminal; "" when it is there, else one line."""
        return self._connect(batch=False)

    def renew(self, *, is_stuck: bool) -> None:
        """After a loss: ends our shared connection that does not answer; goes around the user's, which is not ours
        to end, every other time."""
        if not is_stuck:
            return
        if self.is_ours:
            self._tell("exit")
            for word in self._control:
                if word.startswith("ControlPath="):
                    Path(word.removeprefix("ControlPath=")).unlink(missing_ok=True)
        else:
            self._is_avoided = not self._is_avoided

    def _user_has_one(self) -> bool:
        path = self.resolved["controlpath"]
        if path in ("", "none"):
            return False
        if self._tell("check"):
            return True
        makes = self.resolved["controlmaster"] in ("auto", "yes", "true", "autoask")
        return makes and self.resolved["controlpersist"] not in ("", "no", "false")

    def _own_control(self, persist_s: int) -> tuple[str, ...]:
        place = private_directory()
        if place is None:
            return ("-o", "ControlPath=none")
        words = (*self.options.arguments(), self.address.name, self.resolved["hostname"], self.resolved["user"])
        name = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:20]
        path = str(place / name).replace("%", "%%")
        return ("-o", "ControlMaster=auto", "-o", f"ControlPath={path}", "-o", f"ControlPersist={persist_s}")

    def _tell(self, what: str) -> bool:
        argv = command_line(self.address, self.options, self.resolved, self._control, batch=True, mode=("-O", what))
        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_CHECK_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _connect(self, *, batch: bool) -> str:
        if problem := self.prepare():
            return problem
        if self._control[-1:] == ("ControlPath=none",):
            return "" if batch else "there is no private place for a shared connection; set XDG_RUNTIME_DIR"
        if self.is_alive():
            return ""
        control = self._own_control(PERSIST_S if batch else PERSIST_ASKED_S) if self.is_ours else ()
        argv = command_line(self.address, self.options, self.resolved, control, batch=batch, mode=("-f", "-N"))
        try:
            if batch:
                return self.with_cause(self._quietly(argv))
            done = subprocess.run(argv, check=False)
        except OSError as error:
            return f"ssh cannot be run here ({error.strerror})"
        return "" if done.returncode == 0 else "no connection was made"

    def _quietly(self, argv: list[str]) -> str:
        # Into a file: the connection that stays behind keeps its stderr, and a pipe would never end.
        with tempfile.TemporaryFile() as said:
            try:
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    timeout=_CONNECT_S,
                    check=False,
                    start_new_session=True,
                    env=quiet_environment(),
                )
            except subprocess.TimeoutExpired:
                return f"no answer within {_CONNECT_S:.0f} s"
            said.seek(0)
            reason = last_line(said.read(65536), self.way) or "no connection was made"
        return "" if done.returncode == 0 else reason


def private_directory() -> Path | None:
    """A directory of our own that no one else can enter; None when there is none."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    places = [Path(runtime) / "trainmon"] if runtime else []
    places += [Path.home() / ".ssh" / "trainmon", Path(tempfile.gettempdir()) / f"trainmon-{os.getuid()}"]
    for place in places:
        is_homeless = place.parent.name == ".ssh" and not place.parent.is_dir()
        if is_homeless or len(os.fsencode(place)) + 21 > _LONGEST_SOCKET:
            continue
        try:
            place.mkdir(mode=0o700, exist_ok=True)
            status = place.lstat()
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077:
            return place
    return None
