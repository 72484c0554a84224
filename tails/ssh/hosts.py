"""The hosts of this process: one connection each, shared by everything that reads there."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from trainmon.tails.clock import Clock, SystemClock
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.master import Master
from trainmon.tails.ssh.options import SshOptions
from trainmon.tails.ssh.places import Heads
from trainmon.tails.text import printable

_END_S = 2.0


class Hosts:
    """Connections by address, made when first asked for. Any thread may call."""

    def __init__(self, options: SshOptions | None = None, clock: Clock | None = None) -> None:
        self.options = options or SshOptions()
        self._clock = clock or SystemClock()
        self._hosts: dict[Address, Host] = {}
        self._masters: dict[Address, Master] = {}
        self._heads: dict[Address, Heads] = {}
        self._lock = threading.Lock()

    def host(self, address: Address) -> Host:
        """The host at `address`."""
        with self._lock:
            if address not in self._hosts:
                self._hosts[address] = Host(self._master(address), self._clock)
            return self._hosts[address]

    @property
    def known(self) -> tuple[Host, ...]:
        """The hosts that were asked for."""
        with self._lock:
            return tuple(self._hosts.values())

    def heads(self, address: Address) -> Heads:
        """What earlier searches on that host found out."""
        with self._lock:
            return self._heads.setdefault(address, Heads())

    def connect(self, addresses: Iterable[Address]) -> tuple[str, ...]:
        """Makes the shared connections before any screen starts, and asks in the terminal what must be asked.

        First all at once without asking; then, one after the other, those that want an answer. Blocks. Returns a line
        for each host that could not be reached; those are tried again later, without asking.
        """
        masters = []
        with self._lock:
            for address in dict.fromkeys(addresses):
                masters.append(self._master(address))
        if not masters:
            return ()
        with ThreadPoolExecutor(max_workers=min(len(masters), 8)) as pool:
            reasons = list(pool.map(lambda master: master.connect(), masters))
        problems = []
        for master, reason in zip(masters, reasons, strict=True):
            if reason and _may_be_asked(reason) and is_terminal():
                sys.stderr.write(f"trainmon: connecting to {master.address.name} ({printable(reason, 200)})\n")
                sys.stderr.flush()
                reason = master.ask()
            if reason:
                problems.append(master.explain(printable(reason, 300)))
        return tuple(problems)

    def close(self) -> None:
        """Ends all connections of ours; a shared one stays for a while (`master.PERSIST_S`)."""
        with self._lock:
            hosts, self._hosts = list(self._hosts.values()), {}
            self._masters.clear()
        for host in hosts:
            host.stop()
        for host in hosts:
            host.join(_END_S)

    def master(self, address: Address) -> Master:
        """How to reach the host at `address`, for other commands than the reader."""
        with self._lock:
            return self._master(address)

    def _master(self, address: Address) -> Master:
        if address not in self._masters:
            self._masters[address] = Master(address, self.options)
        return self._masters[address]


def _may_be_asked(reason: str) -> bool:
    """Whether an answer of the user may help."""
    lower = reason.lower()
    return "permission denied" in lower or "host key verification failed" in lower or "no answer within" in lower


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return sys.stderr.isatty()


_shared: Hosts | None = None
_shared_lock = threading.Lock()


def hosts() -> Hosts:
    """The hosts that this process reads from."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Hosts()
            atexit.register(close)
        return _shared


def configure(options: SshOptions) -> None:
    """Sets what is passed on to ssh, for all connections from now on; those there are end."""
    close()
    hosts().options = options


def connect_in_terminal(addresses: Iterable[Address]) -> None:
    """Makes the shared connections where somebody can be asked; where not, each is made when it is needed."""
    if is_terminal():
        hosts().connect(addresses)


def close() -> None:
    """Ends all connections of `hosts`."""
    with _shared_lock:
        known = _shared
    if known is not None:
        known.close()
