"""Following files on another host: what arrives is compared with the file, byte by byte, on both kinds of far side."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faultfs import FaultFs
from tests.sshd import Sshd
from tests.tails.ssh.server import Near

Connect = Callable[..., Near]

ODD_NAMES = [
    "plain.log",
    "with space.log",
    'it\'s "quoted".log',
    "$(touch hacked);`touch hacked`|&.log",
    "line\nend\n",
    "-rf",
    "--help.log",
    "back\\slash\\0101.log",
    "st*r[a]?.log",
    "%s%b.log",
    os.fsdecode(b"latin-\xe9\xff.log"),
    "größe-数字.log",
]


def lines(count: int, seed: int = 0) -> bytes:
    chance = random.Random(seed)
    return b"".join(b"step: %d loss: %.6f\n" % (i, chance.random()) for i in range(count))


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name(shared_near: Near, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(lines(50))
    got = shared_near.follow(path)
    got.until(lines(50))
    with path.open("ab") as out:
        out.write(b"more \0\xff\r\n")
    got.until(lines(50) + b"more \0\xff\r\n")
    assert list(tmp_path.iterdir()) == [path]
    assert got.follower.problem == ""
    got.follower.close()


def test_any_bytes_in_any_pieces(shared_near: Near, tmp_path: Path) -> None:
    chance = random.Random(1)
    path = tmp_path / "a.log"
    path.write_bytes(b"")
    got = shared_near.follow(path)
    content = b""
    for size in (1, 3, 5000, 70_000, 1_300_000, 2):
        piece = chance.randbytes(size)
        content += piece
        with path.open("ab") as out:
            out.write(piece)
        got.take()
    got.until(content)
    assert got.events == ["appeared"]


def test_a_file_that_comes_goes_and_comes_back(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "late.log"
    got = shared_near.follow(path)
    got.until_true(lambda: "not there" in got.follower.problem)
    path.write_bytes(lines(20))
    got.until(lines(20))
    assert got.follower.problem == ""
    path.unlink()
    got.until_true(lambda: "gone" in got.events)
    assert "deleted" in got.follower.problem
    path.write_bytes(lines(30, seed=5))
    got.until(lines(30, seed=5))
    assert got.older == [lines(20)]
    assert got.events[:2] == ["appeared", "gone"]


def test_truncated_and_written_anew(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(lines(1000))
    got = shared_near.follow(path)
    got.until(lines(1000))
    path.write_bytes(lines(10, seed=3))
    got.until(lines(10, seed=3))
    assert got.older == [lines(1000)]
    assert "truncated" in got.events


def test_the_same_size_with_another_content(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"a" * 5000)
    got = shared_near.follow(path)
    got.until(b"a" * 5000)
    time.sleep(0.05)
    path.write_bytes(b"b" * 5000)
    got.until(b"b" * 5000)
    assert got.older == [b"a" * 5000]


def test_a_copy_that_goes_on_is_read_on(shared_near: Near, tmp_path: Path) -> None:
    """As rsync does: another inode, the same beginning."""
    path = tmp_path / "a.log"
    path.write_bytes(lines(500))
    got = shared_near.follow(path)
    got.until(lines(500))
    (tmp_path / ".a.tmp").write_bytes(lines(800))
    (tmp_path / ".a.tmp").rename(path)
    got.until(lines(800))
    assert got.events == ["appeared"]


def test_rotated_by_renaming(shared_near: Near, tmp_path: Path) -> None:
    """What was written to the old file just before and after it was renamed is read first."""
    path = tmp_path / "a.log"
    path.write_bytes(lines(100))
    got = shared_near.follow(path)
    got.until(lines(100))
    with path.open("ab") as writer:
        writer.write(b"just before\n")
        writer.flush()
        path.rename(tmp_path / "a.log.1")
        writer.write(b"just after\n")
        writer.flush()
        path.write_bytes(b"new file\n")
    got.until(lines(100) + b"just before\njust after\n" + b"new file\n")
    assert "rotated" in got.events


def test_rotated_by_copying(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(lines(100))
    got = shared_near.follow(path)
    got.until(lines(100))
    (tmp_path / "a.log.1").write_bytes(lines(100) + b"last words\n")
    path.write_bytes(b"anew\n")
    got.until(lines(100) + b"last words\nanew\n")
    assert "rotated" in got.events


def test_a_hole_left_by_a_writer_that_kept_its_offset(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as writer:
        writer.write(lines(4000))
        writer.flush()
        got = shared_near.follow(path)
        got.until(lines(4000))
        os.truncate(path, 0)
        time.sleep(1.5)
        writer.write(b"after the hole\n")
        writer.flush()
        data = b""
        end = time.monotonic() + 30
        while not data.endswith(b"after the hole\n") and time.monotonic() < end:
            data += got.follower.poll(1 << 20).data
            time.sleep(0.01)
    assert data.strip(b"\0") == b"after the hole\n"


def test_what_is_taken_back_is_given_again(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"words\0\0\0\0")
    got = shared_near.follow(path)
    got.until(b"words\0\0\0\0")
    got.follower.unread(4)
    got.data = got.data[:-4]
    with path.open("r+b") as out:
        out.seek(5)
        out.write(b"more")
    got.until(b"wordsmore")


def test_what_is_no_regular_file_is_said(shared_near: Near, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, word in ((tmp_path / "pipe", "FIFO"), (tmp_path, "directory")):
        got = shared_near.follow(path)
        got.until_true(lambda got=got: got.follower.problem != "")  # type: ignore[misc]
        assert word in got.follower.problem
        assert got.data == b""


@pytest.mark.requires("not-root")
def test_a_file_that_may_not_be_read_is_said(shared_near: Near, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x")
    path.chmod(0)
    got = shared_near.follow(path)
    got.until_true(lambda: "permission" in got.follower.problem)


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ({"open": errno.EACCES}, "permission"),
        ({"read": errno.EIO}, "read error (EIO)"),
        ({"read": errno.ESTALE}, "stale file handle"),
    ],
)
def test_an_error_there_is_said_and_nothing_is_lost(
    shared_near: Near, tmp_path: Path, fault: dict[str, int], word: str
) -> None:
    (tmp_path / "behind").mkdir()
    (tmp_path / "mnt").mkdir()
    (tmp_path / "behind" / "a.log").write_bytes(lines(20))
    mount = FaultFs(tmp_path / "behind", tmp_path / "mnt")
    try:
        mount.set(errors=fault)
        got = shared_near.follow(tmp_path / "mnt" / "a.log")
        got.until_true(lambda: word in got.follower.problem)
        assert not got.data
        mount.mend()
        got.until(lines(20))
        mount.set(errors=fault)
        with (tmp_path / "behind" / "a.log").open("ab") as out:
            out.write(lines(30))
        got.until_true(lambda: word in got.follower.problem)
        mount.mend()
        got.until(lines(20) + lines(30))
        assert got.events == ["appeared"]
    finally:
        mount.mend()
        mount.close()


def test_three_hundred_files_on_one_connection(shared_near: Near, tmp_path: Path) -> None:
    count = 300
    paths = [tmp_path / f"run{number}.log" for number in range(count)]
    for path in paths:
        path.write_bytes(lines(20))
    files = [shared_near.follow(path) for path in paths]
    for got in files:
        got.until(lines(20))
    for number, path in enumerate(paths):
        with path.open("ab") as out:
            out.write(b"step %d\n" % number)
    for number, got in enumerate(files):
        got.until(lines(20) + b"step %d\n" % number)
    assert shared_near.host.connections == 1
    for got in files:
        got.follower.close()


def test_the_clock_there_may_be_wrong(shared_near: Near, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"x")
    got = shared_near.follow(path)
    got.until(b"x")
    monkeypatch.setattr(shared_near.host, "_learn_clock", lambda payload: None)  # it learns it again with every beat
    monkeypatch.setattr(shared_near.host, "skew_s", 3600.0)
    assert got.follower.mtime == pytest.approx(path.stat().st_mtime - 3600.0, abs=0.01)


def test_history_is_left_out_on_request(far: Sshd, connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    content = lines(20_000)
    path.write_bytes(content)
    near = connect(far, history_bytes=50_000)
    got = near.follow(path)
    head, end = b"", b""
    limit = time.monotonic() + 30
    while len(head) + len(end) < len(content) and not end.endswith(content[-100:]) and time.monotonic() < limit:
        update = got.follower.poll(1 << 20)
        if update.data and update.offset == len(head):
            head += update.data
        elif update.data:
            assert content[update.offset - 1 : update.offset] == b"\n" or end
            end += update.data
        time.sleep(0.01)
    assert content.startswith(head)
    assert content.endswith(end)
    assert end.startswith(b"step: ")
    assert 49_000 < len(end) <= 50_000
    assert "left out" in got.follower.problem
    with path.open("ab") as out:
        out.write(b"more\n")
    while not end.endswith(b"more\n") and time.monotonic() < limit:
        end += got.follower.poll(1 << 20).data
        time.sleep(0.01)
    assert (content + b"more\n").endswith(end)


def test_history_comes_at_a_set_rate(sshd: Sshd, connect: Connect, tmp_path: Path) -> None:
    """A long log does not hold up the new lines of another."""
    long, short = tmp_path / "long.log", tmp_path / "short.log"
    long.write_bytes(lines(400_000))
    short.write_bytes(b"one\n")
    near = connect(sshd, rate=100_000)  # all of it would take two minutes
    behind, live = near.follow(long), near.follow(short)
    behind.until_true(lambda: len(behind.data) > 100_000)
    live.until(b"one\n")
    with short.open("ab") as out:
        out.write(b"two\n")
    live.until(b"one\ntwo\n")
    assert len(behind.data) < long.stat().st_size / 2
