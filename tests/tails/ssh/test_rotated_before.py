"""Parts that were rotated away before the log was looked at: read once, the oldest first, on both kinds of far side."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import CLOCK, Near, remote
from trainmon.tails.ssh.follower import RemoteFollower
from trainmon.tails.ssh.unpack import Unpacker

Connect = Callable[..., Near]


def lines(begin: int, end: int) -> bytes:
    return b"".join(b"step: %d loss: %.6f\n" % (i, 3 - 1e-4 * i) for i in range(begin, end))


def rotated(folder: Path, name: str = "train.log") -> bytes:
    """A log with three older parts, one of them packed; what they are together."""
    parts = [lines(0, 60_000), lines(60_000, 60_500), lines(60_500, 61_000), lines(61_000, 61_100)]
    (folder / f"{name}.3.gz").write_bytes(gzip.compress(parts[0]))
    (folder / f"{name}.2").write_bytes(parts[1])
    (folder / f"{name}.1").write_bytes(parts[2])
    (folder / name).write_bytes(parts[3])
    return b"".join(parts)


@pytest.mark.parametrize("name", ["train.log", "a [b]*?.log", "it's $(x)\n.log"])
def test_older_parts_come_first(shared_near: Near, tmp_path: Path, name: str) -> None:
    whole = rotated(tmp_path, name)
    got = shared_near.follow(tmp_path / name)
    got.until(whole)
    with (tmp_path / name).open("ab") as out:
        out.write(b"more\n")
    got.until(whole + b"more\n")
    assert got.events == ["appeared"]
    assert got.follower.problem == ""
    for offset in (0, 7, len(whole) - 40_000, len(whole) - 10):
        assert b"".join(got.follower.blocks(offset)) == (whole + b"more\n")[offset:]
    got.follower.close()


def test_a_rotation_while_the_parts_are_read(shared_near: Near, tmp_path: Path) -> None:
    whole = rotated(tmp_path)
    log = tmp_path / "train.log"
    got = shared_near.follow(log)
    got.until_true(lambda: bool(got.data))
    for number in (3, 2, 1):
        ending = ".gz" if number == 3 else ""
        (tmp_path / f"train.log.{number}{ending}").rename(tmp_path / f"train.log.{number + 1}{ending}")
    log.rename(tmp_path / "train.log.1")
    log.write_bytes(b"the new one\n")
    got.until(whole + b"the new one\n")
    assert "rotated" in got.events
    got.follower.close()


def test_numbers_of_ranks_are_no_parts(shared_near: Near, tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"out.log.{rank}").write_bytes(lines(0, 10))
    (tmp_path / "out.log").write_bytes(lines(0, 5))
    got = shared_near.follow(tmp_path / "out.log")
    got.until(lines(0, 5))
    got.follower.close()


def test_a_log_that_is_not_there_yet_has_its_older_parts(shared_near: Near, tmp_path: Path) -> None:
    (tmp_path / "a.log.1").write_bytes(lines(0, 10))
    got = shared_near.follow(tmp_path / "a.log")
    got.until(lines(0, 10))
    (tmp_path / "a.log").write_bytes(lines(10, 20))
    got.until(lines(0, 20))
    got.follower.close()


def test_damaged_parts_are_named(shared_near: Near, tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(100_000))
    (tmp_path / "a.log.2.gz").write_bytes(b"no gzip at all")
    (tmp_path / "a.log.1.gz").write_bytes(packed[:50_000])
    (tmp_path / "a.log").write_bytes(lines(0, 10))
    got = shared_near.follow(tmp_path / "a.log")
    got.until_true(lambda: got.data.endswith(lines(0, 10)))
    assert "a.log.1.gz: ends in the midst of its packed data" in got.follower.problem
    assert len(got.data) > 40_000
    got.follower.close()


def test_no_more_than_the_history_that_is_wanted(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far, history_bytes=20_000)
    whole = rotated(tmp_path)
    got = near.follow(tmp_path / "train.log")
    got.until(lines(60_500, 61_100))
    assert whole.endswith(got.data)
    assert "train.log.2 and what is older were left out (--ssh-history)" in got.follower.problem


def test_at_a_set_rate(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far, rate=40_000)
    (tmp_path / "a.log.1").write_bytes(lines(0, 4000))
    (tmp_path / "a.log").write_bytes(lines(4000, 4010))
    got = near.follow(tmp_path / "a.log")
    got.until(lines(0, 4010))


def test_read_to_the_end_once(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    near = connect(far)
    whole = rotated(tmp_path)
    follower = RemoteFollower(remote(tmp_path / "train.log"), near.host, CLOCK, patience_s=20.0)
    data = b""
    while True:
        update = follower.poll(1 << 16)
        assert update.offset == len(data)
        data += update.data
        if not update.more:
            break
    assert data == whole
    assert update.is_at_end


def test_the_unpacker_gives_bounded_pieces() -> None:
    content = b"0" * 3_000_000
    unpacker = Unpacker()
    pieces = []
    packed = gzip.compress(content) + gzip.compress(b"two") + b"\0" * 100
    for start in range(0, len(packed), 7):
        unpacker.give(packed[start : start + 7])
        while piece := unpacker.take(10_000):
            pieces.append(piece)
    unpacker.give(b"")
    assert b"".join(pieces) == content + b"two"
    assert max(map(len, pieces)) <= 10_000
    assert unpacker.problem == ""
