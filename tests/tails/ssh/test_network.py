"""A link between two network namespaces that is taken down and put up again, and one that is thin (a tbf queue).

The sshd listens on one end of a veth pair, ssh runs in a network namespace that has the other. Needs root and iproute2.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sshd import Sshd, server_lacking
from tests.tails.ssh.server import Near, options_for, server
from trainmon.tails.ssh import host as host_module


def _try(*command: str) -> str:
    """Runs `command`; what it complained of, "" when all is well."""
    place = shutil.which(command[0], path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if place is None:
        return f"{command[0]} is not installed (Debian: iproute2)"
    done = subprocess.run([place, *command[1:]], capture_output=True, text=True, check=False)
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""


@dataclass(frozen=True)
class Wire:
    """A veth pair, and a network namespace with its other end."""

    namespace: str
    ours: str
    address: str

    def set(self, state: str) -> None:
        """Takes it "down" or puts it "up"."""
        assert _try("ip", "link", "set", self.ours, state) == ""


@pytest.fixture
def wire() -> Iterator[Wire]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    tag = uuid.uuid4().hex[:6]
    net = f"10.{random.SystemRandom().randint(200, 250)}.{random.SystemRandom().randint(1, 250)}"
    made = Wire(f"tmtest{tag}", f"tma{tag}", f"{net}.1")
    inside = ("ip", "-n", made.namespace)
    steps = [
        ("ip", "netns", "add", made.namespace),
        ("ip", "link", "add", made.ours, "type", "veth", "peer", "name", f"tmb{tag}", "netns", made.namespace),
        ("ip", "address", "add", f"{made.address}/30", "dev", made.ours),
        ("ip", "link", "set", made.ours, "up"),
        (*inside, "address", "add", f"{net}.2/30", "dev", f"tmb{tag}"),
        (*inside, "link", "set", f"tmb{tag}", "up"),
    ]
    try:
        for step in steps:
            if problem := _try(*step):
                server_lacking(f"no network namespace can be made here: {problem}")
        yield made
    finally:
        _try("ip", "link", "delete", made.ours)
        _try("ip", "netns", "delete", made.namespace)


@pytest.fixture
def near(wire: Wire, tmp_path: Path, private: None) -> Iterator[Near]:
    """The connection over the wire."""
    with server(tmp_path / "s", f"ListenAddress {wire.address}") as sshd:
        made = Near(options_for(sshd, program=str(_ssh_in(wire, tmp_path)), options=_to(wire, sshd)))
        yield made
        wire.set("up")
        made.close()


def _ssh_in(wire: Wire, folder: Path) -> Path:
    program = folder / "ssh-in-namespace"
    program.write_text(f'#!/bin/sh\nPATH="$PATH:/usr/sbin:/sbin"\nexec ip netns exec {wire.namespace} ssh "$@"\n')
    program.chmod(0o755)
    return program


def _to(wire: Wire, sshd: Sshd) -> tuple[str, ...]:
    return (f"HostName={wire.address}", f"HostKeyAlias=[127.0.0.1]:{sshd.port}", "ConnectTimeout=3")


def test_a_link_that_is_down_for_a_while(near: Near, wire: Wire, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    got = near.follow(path)
    got.until(b"one\n")
    wire.set("down")
    with path.open("ab") as out:
        out.write(b"two\n")
    got.until_true(lambda: "does not answer for" in near.host.problem)
    assert got.data == b"one\n"
    assert "what is shown is at least that old" in near.host.problem
    wire.set("up")
    got.until(b"one\ntwo\n", 60.0)
    got.until_true(lambda: near.host.problem == "")


def test_a_link_that_is_down_until_the_connection_is_given_up(
    near: Near, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GIVE_UP_S", 6.0), ("DEAD_S", 3.0), ("RETRY_FIRST_S", 0.1), ("RETRY_LAST_S", 0.3)):
        monkeypatch.setattr(host_module, name, value)
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    got = near.follow(path)
    got.until(b"one\n")
    wire.set("down")
    with path.open("ab") as out:
        out.write(b"two\n")
    got.until_true(lambda: "connecting again" in near.host.problem)
    wire.set("up")
    got.until(b"one\ntwo\n", 60.0)
    assert got.events == ["appeared"]
    assert near.host.connections >= 2


def test_new_lines_pass_a_long_history_on_a_thin_link(near: Near, wire: Wire, tmp_path: Path) -> None:
    queue = ("tc", "qdisc", "add", "dev", wire.ours, "root", "tbf", "rate", "8mbit", "burst", "16kb", "latency", "50ms")
    if problem := _try(*queue):
        server_lacking(f"no tbf queue can be made here: {problem}")
    history = random.Random(0).randbytes(6_000_000)
    (tmp_path / "big.log").write_bytes(history)
    live = tmp_path / "live.log"
    live.write_bytes(b"")
    seen, big = near.follow(live), near.follow(tmp_path / "big.log")
    sent = b""
    big.until_true(lambda: len(big.data) > 300_000)
    while len(sent) < 20:
        sent += b"line\n"
        with live.open("ab") as out:
            out.write(b"line\n")
        while seen.data != sent:
            seen.take()
            big.take()
    assert len(big.data) < len(history), "the lines came after the whole history"
    big.until(history, 60.0)
