"""Connections that break in every way: nothing is lost, nothing comes twice, and the reader there does not stay."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import CLOCK, Near, bare_path, readers, server
from trainmon.tails.ssh import host as host_module
from trainmon.tails.ssh import link
from trainmon.tails.ssh.shell_side import ShellSide
from trainmon.tails.ssh.side import PythonSide

Connect = Callable[..., Near]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries again soon: what is tested is that it does, not how long it waits."""
    monkeypatch.setattr(host_module, "RETRY_FIRST_S", 0.1)
    monkeypatch.setattr(host_module, "RETRY_LAST_S", 0.3)
    monkeypatch.setattr(host_module, "STABLE_S", 0.0)


class Writer(threading.Thread):
    """Appends lines without pause, cut anywhere."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.path = path
        self.content = b""
        self.is_stopped = False

    def run(self) -> None:
        chance = random.Random(0)
        with self.path.open("ab", buffering=0) as out:
            while not self.is_stopped:
                piece = chance.randbytes(chance.randint(1, 3000))
                out.write(piece)
                self.content += piece
                time.sleep(0.002)


def test_sessions_killed_mid_record(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far)
    path = tmp_path / "a.log"
    path.touch()
    got = near.follow(path)
    writer = Writer(path)
    writer.start()
    for _ in range(3):
        size = len(got.data)
        got.until_true(lambda size=size: len(got.data) > size + 50_000)  # type: ignore[misc]
        far.drop_connections()
    writer.is_stopped = True
    writer.join()
    got.until(writer.content)
    assert got.events == ["appeared"]
    assert near.host.connections >= 2


def test_a_killed_reader_is_started_again(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far)
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    got = near.follow(path)
    got.until(b"one\n")
    for pid in readers(far):
        with contextlib.suppress(ProcessLookupError):  # where there are several, one ends with the other
            os.kill(pid, signal.SIGKILL)
    with path.open("ab") as out:
        out.write(b"two\n")
    got.until(b"one\ntwo\n")
    assert near.host.problem == "" or "lost" in near.host.problem


def test_rotated_while_nobody_looked(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    """A drop, and what was written meanwhile lies in the file that was renamed."""
    near = connect(far)
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    got = near.follow(path)
    got.until(b"one\n")
    far.drop_connections(signal.SIGKILL)
    with path.open("ab") as out:
        out.write(b"two\n")
    path.rename(tmp_path / "a.log.1")
    path.write_bytes(b"three\n")
    got.until(b"one\ntwo\nthree\n")


def test_rotated_twice_and_packed_while_nobody_looked(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    """As logrotate does with delaycompress, over a weekend."""
    near = connect(far)
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    got = near.follow(path)
    got.until(b"one\n")
    far.drop_connections(signal.SIGKILL)
    (tmp_path / "a.log.2.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    path.unlink()
    (tmp_path / "a.log.1").write_bytes(b"three\n")
    path.write_bytes(b"four\n")
    got.until(b"one\ntwo\nthree\nfour\n")
    assert "rotated" in got.events


def test_truncated_while_nobody_looked(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far)
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n" * 100)
    got = near.follow(path)
    got.until(b"one\n" * 100)
    far.drop_connections(signal.SIGKILL)
    path.write_bytes(b"another file\n" * 200)
    got.until(b"another file\n" * 200)
    assert got.older == [b"one\n" * 100]


def test_the_host_goes_down_and_comes_back(tmp_path: Path, connect: Connect) -> None:
    with server(tmp_path / "own") as own:
        near = connect(own)
        path = tmp_path / "a.log"
        path.write_bytes(b"one\n")
        got = near.follow(path)
        got.until(b"one\n")
        own.stop()
        near.host.master.renew(is_stuck=True)
        got.until_true(lambda: all(word in got.follower.problem for word in ("refused", "connecting again")))
        with path.open("ab") as out:
            out.write(b"two\n")
        own.start()
        got.until(b"one\ntwo\n")
        got.until_true(lambda: got.follower.problem == "")


def test_a_stalled_link_is_told_and_survived(tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes and nothing is closed: the screen says so, and what is read on is right."""
    monkeypatch.setattr(host_module, "UNSURE_S", 0.5)  # the beat is every 2 s: told at once when it is stopped
    with server(tmp_path / "own") as own:
        near = connect(own)
        path = tmp_path / "a.log"
        path.write_bytes(b"one\n")
        got = near.follow(path)
        got.until(b"one\n")
        pids = [own.pid, *own.connections()]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        got.until_true(lambda: "what is shown is at least that old" in near.host.problem)
        with path.open("ab") as out:
            out.write(b"two\n")
        assert got.data == b"one\n"
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        got.until(b"one\ntwo\n")


def test_a_link_that_stays_stalled_is_given_up(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "GIVE_UP_S", 6.0)
    with server(tmp_path / "own") as own:
        near = connect(own)
        path = tmp_path / "a.log"
        path.write_bytes(b"one\n")
        got = near.follow(path)
        got.until(b"one\n")
        stopped = own.connections()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        with path.open("ab") as out:
            out.write(b"two\n")
        got.until(b"one\ntwo\n", 90.0)  # over a new connection: the old processes still stand
        assert near.host.connections >= 2
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)


def test_limits_of_silence() -> None:
    """The issue's: a dead link is known within 10 s, and the age of the data is on the screen within 2 s of doubt."""
    assert host_module.DEAD_S <= 10.0
    assert host_module.UNSURE_S - 2 * host_module.BEAT_S <= 2.0


@pytest.mark.parametrize("is_bare", [False, True])
def test_the_reader_there_ends_with_the_connection(connect: Connect, tmp_path: Path, is_bare: bool) -> None:
    with server(tmp_path / "own", path=bare_path(tmp_path) if is_bare else "") as own:
        near = connect(own)
        (tmp_path / "a.log").write_bytes(b"one\n")
        got = near.follow(tmp_path / "a.log")
        near.follow(tmp_path / "pipe")
        os.mkfifo(tmp_path / "pipe")
        got.until_true(lambda: bool(readers(own)) and (not is_bare or bool(_followers(tmp_path))))
        near.close()
        end = CLOCK.monotonic() + 60
        while (readers(own) or _followers(tmp_path)) and CLOCK.monotonic() < end:
            time.sleep(0.05)
        assert not readers(own)
        assert not _followers(tmp_path)


@pytest.mark.parametrize("is_bare", [False, True])
def test_a_reader_that_hears_nothing_ends_by_itself(
    connect: Connect, tmp_path: Path, is_bare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the connection hangs: our end is stopped, and nothing tells the other that it has gone."""
    real = link._program
    lease = {b"LEASE_S = 60\n": b"LEASE_S = 4\n", b"sleep 60 &\n": b"sleep 4 &\n"}

    def soon(name: str) -> bytes:
        text = real(name)
        for old, new in lease.items():
            text = text.replace(old, new)
        return text

    monkeypatch.setattr(link, "_program", soon)
    with server(tmp_path / "own", path=bare_path(tmp_path) if is_bare else "") as own:
        near = connect(own)
        path = tmp_path / "a.log"
        path.write_bytes(b"one\n")
        near.follow(path).until(b"one\n")
        readers_now = readers(own)
        for side in (PythonSide, ShellSide):
            monkeypatch.setattr(side, "beat", lambda self, now: now + 60.0)  # says nothing any more
        end = CLOCK.monotonic() + 60
        while set(readers(own)) & set(readers_now) and CLOCK.monotonic() < end:
            time.sleep(0.05)
        assert not set(readers(own)) & set(readers_now)


def _followers(place: Path) -> list[bytes]:
    """The tails that follow files in `place`, whoever their parent is now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"tail\0") and os.fsencode(place) in command:
                found.append(command)
    return found


def test_nothing_is_written_there(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "a.log"
    path.write_bytes(b"one\n")
    before = {place: place.stat().st_mtime_ns for place in (tmp_path / "logs", path)}
    got = connect(far).follow(path)
    got.until(b"one\n")
    assert list((tmp_path / "logs").iterdir()) == [path]
    assert before == {place: place.stat().st_mtime_ns for place in before}
