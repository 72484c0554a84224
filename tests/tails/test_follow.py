from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.clocks import FakeClock
from trainmon.tails.follow import GRACE_S, HAND_OVER_S, RESTARTS, FileEvent, Follower, FollowUpdate

BUDGET = 1 << 20


def follower(path: Path) -> tuple[Follower, FakeClock]:
    clock = FakeClock()
    return Follower(path, clock), clock


def read(follow: Follower, clock: FakeClock, wait_s: float = 0.0) -> tuple[bytes, list[FileEvent]]:
    """Polls until nothing more is there at once."""
    clock.sleep(wait_s)
    data, events = b"", []
    while True:
        update = follow.poll(BUDGET)
        if RESTARTS & set(update.events):
            data = b""
        data += update.data
        events += update.events
        if not update.more:
            return data, events


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_appended_bytes_come_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    assert read(follow, clock) == (b"one\n", [FileEvent.APPEARED])
    assert read(follow, clock) == (b"", [])
    append(path, b"two\nthr")
    assert follow.poll(BUDGET) == FollowUpdate(b"two\nthr", 4, (), False, True)


def test_a_budget_is_kept_and_more_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"abcdef")
    follow, _ = follower(path)
    assert [follow.poll(4), follow.poll(4)] == [
        FollowUpdate(b"abcd", 0, (FileEvent.APPEARED,), True, False),
        FollowUpdate(b"ef", 4, (), False, True),
    ]


def test_not_there_yet(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "a.log"
    follow, clock = follower(path)
    assert read(follow, clock) == (b"", [])
    assert "a.log" in follow.problem
    assert "not there yet" in follow.problem
    path.parent.mkdir()
    path.write_bytes(b"one\n")
    assert read(follow, clock) == (b"one\n", [FileEvent.APPEARED])
    assert follow.problem == ""


def test_truncated_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    follow, clock = follower(path)
    read(follow, clock)
    path.write_bytes(b"new\n")
    assert read(follow, clock) == (b"new\n", [FileEvent.TRUNCATED])


def test_truncated_to_a_prefix_is_believed_after_a_while(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    follow, clock = follower(path)
    read(follow, clock)
    os.truncate(path, 4)
    assert read(follow, clock) == (b"", [])
    assert read(follow, clock, 1.5) == (b"one\n", [FileEvent.TRUNCATED])


def test_a_table_rewritten_with_more_rows_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_bytes(b"step,loss\n1,2.5\n")
    follow, clock = follower(path)
    read(follow, clock)
    path.write_bytes(b"")
    assert read(follow, clock) == (b"", [])
    append(path, b"step,loss\n1,2.5\n2,2.4\n")
    assert read(follow, clock) == (b"2,2.4\n", [])


def test_copytruncate_grown_past_the_old_end_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\ntwo\n")
    follow, clock = follower(path)
    read(follow, clock)
    os.truncate(path, 0)
    append(path, b"a new file, longer than the old one\n")
    assert read(follow, clock) == (b"a new file, longer than the old one\n", [FileEvent.TRUNCATED])


def test_a_writer_that_keeps_its_offset_leaves_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb", buffering=0) as writer:
        writer.write(b"one\n" * 100)
        follow, clock = follower(path)
        read(follow, clock)
        os.truncate(path, 0)
        writer.write(b"two\n")
    assert read(follow, clock) == (b"\0" * 400 + b"two\n", [FileEvent.TRUNCATED])


def test_a_huge_hole_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.seek(1 << 40)
        file.write(b"one\n")
    follow, clock = follower(path)
    polls = 0
    data = b""
    while True:
        update = follow.poll(BUDGET)
        data += update.data
        polls += 1
        if not update.more:
            break
    assert data.strip(b"\0") == b"one\n"
    assert update.offset + len(update.data) == (1 << 40) + 4
    assert polls < 10
    assert read(follow, clock) == (b"", [])


def test_preallocated_space_is_filled_later(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    os.truncate(path, 1 << 21)
    follow, clock = follower(path)
    first, _ = read(follow, clock)
    assert first.startswith(b"one\n")


def test_replaced_by_a_new_file_after_the_old_one_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    append(path, b"two\n")
    other = tmp_path / "b"
    other.write_bytes(b"three\n")
    other.rename(path)
    assert read(follow, clock) == (b"two\n", [])
    assert read(follow, clock) == (b"", [])
    clock.sleep(HAND_OVER_S)
    assert follow.poll(BUDGET) == FollowUpdate(b"three\n", 0, (FileEvent.REPLACED,), False, True)


def test_a_longer_copy_of_the_same_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    (tmp_path / "b").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").rename(path)
    assert read(follow, clock) == (b"", [])
    assert read(follow, clock, HAND_OVER_S) == (b"two\n", [])


def test_a_writer_goes_on_in_the_renamed_file(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb", buffering=0) as writer:
        writer.write(b"one\n")
        follow, clock = follower(path)
        read(follow, clock)
        path.rename(tmp_path / "a.log.1")
        path.touch()
        writer.write(b"two\n")
        assert read(follow, clock) == (b"two\n", [])
        path.write_bytes(b"three\n")
        assert read(follow, clock) == (b"", [])
        writer.write(b"the last words of another handle\n")
        assert read(follow, clock) == (b"the last words of another handle\n", [])
        assert read(follow, clock) == (b"", [])
        assert read(follow, clock, HAND_OVER_S) == (b"three\n", [FileEvent.REPLACED])


def test_deleted_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    path.unlink()
    assert read(follow, clock) == (b"", [FileEvent.GONE])
    assert "deleted" in follow.problem
    assert read(follow, clock, GRACE_S + 1) == (b"", [])
    assert not follow.is_open
    path.write_bytes(b"two\n")
    assert read(follow, clock) == (b"two\n", [FileEvent.APPEARED, FileEvent.REPLACED])
    assert follow.problem == ""


def test_deleted_and_the_same_back_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    path.rename(tmp_path / "b")
    assert read(follow, clock) == (b"", [FileEvent.GONE])
    (tmp_path / "b").rename(path)
    append(path, b"two\n")
    assert read(follow, clock) == (b"two\n", [FileEvent.APPEARED])


def test_a_replacement_of_the_same_size_in_the_same_inode_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    with path.open("r+b") as file:
        file.write(b"two\n")
    assert read(follow, clock) == (b"two\n", [FileEvent.TRUNCATED])


def test_a_released_file_is_read_on(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    read(follow, clock)
    follow.release()
    assert read(follow, clock) == (b"", [])
    follow.release()
    append(path, b"two\n")
    assert read(follow, clock) == (b"two\n", [])


def test_unread_bytes_are_given_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n\0\0")
    follow, clock = follower(path)
    assert read(follow, clock)[0] == b"one\n\0\0"
    follow.unread(2)
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"two\n")
    assert read(follow, clock) == (b"two\n", [])


def test_what_is_no_file_is_named_and_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "sock"))
    (tmp_path / "metrics.jsonl").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for name, words in {
        "fifo": "pipe",
        "sock": "socket",
        "metrics.jsonl": "is a directory",
        "loop": "circle",
        "file/a.log": "not a directory",
    }.items():
        follow, clock = follower(tmp_path / name)
        assert read(follow, clock) == (b"", [])
        assert words in follow.problem
        assert name in follow.problem
    follow, clock = follower(Path("/dev/zero"))
    assert read(follow, clock) == (b"", [])
    assert "device" in follow.problem
    server.close()


_AS_NOBODY = """
import sys
sys.path[:0] = {path!r}
from tests.tails.clocks import FakeClock
from trainmon.tails.follow import Follower
clock = FakeClock()
follow = Follower(sys.argv[1], clock)
assert follow.poll(100).data == b""
print(follow.problem, flush=True)
sys.stdin.readline()
assert follow.poll(100).data == b"", "retried too early"
clock.sleep(60)
print(follow.poll(100).data.decode(), follow.problem)
"""


def test_permission_denied_is_said_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one")
    path.chmod(0o000)
    command = [sys.executable, "-c", _AS_NOBODY.format(path=sys.path), str(path)]
    if os.getuid() == 0:
        for directory in (tmp_path, *tmp_path.parents):
            if directory.stat().st_mode & 0o005 != 0o005 and str(directory).startswith("/tmp/"):
                directory.chmod(0o755)
        command = ["setpriv", "--reuid", "65534", "--clear-groups", *command]
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        pytest.skip("root ignores modes and setpriv is not there")
    assert child.stdout is not None
    first = child.stdout.readline()
    path.chmod(0o644)
    rest, _ = child.communicate("\n", timeout=30)
    assert "permission denied" in first
    assert "a.log" in first
    assert rest.strip() == "one"


operations = st.lists(
    st.sampled_from(["append", "append", "truncate", "replace", "copytruncate", "delete", "poll", "poll"]),
    max_size=30,
)


class Simulation:
    """A file, what is in it, and what a follower gave of it: one byte string a generation."""

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = path, budget
        self.follow, self.clock = follower(path)
        self.numbers = iter(range(1_000_000))
        self.content: bytes | None = None
        self.is_held = False  # the follower has the path's present file open
        self.generations = [b""]
        self.promised: list[bytes] = []  # files that were held when they were replaced or deleted

    def poll(self) -> None:
        more = True
        while more:
            update = self.follow.poll(self.budget)
            if RESTARTS & set(update.events):
                self.generations.append(b"")
            self.generations[-1] += update.data
            more = update.more
        self.is_held = False
        if self.content is not None:  # a new file is taken up once the old one has been quiet for a moment
            status = self.path.stat()
            self.is_held = self.follow.identity == (status.st_dev, status.st_ino)

    def settle(self) -> None:
        for _ in range(3):
            self.poll()
            self.clock.sleep(1.1)
        self.poll()
        if self.content is not None:
            assert self.generations[-1] == self.content

    def line(self) -> bytes:
        return b"line %d\n" % next(self.numbers)

    def lose(self) -> None:
        if self.is_held and self.content is not None:
            self.promised.append(self.content)
        self.is_held = False

    def do(self, what: str) -> None:
        if what == "poll":
            self.settle()
        elif what == "append":
            line = self.line()
            append(self.path, line)
            self.content = (self.content or b"") + line
        elif what == "replace":
            self.lose()
            self.content = self.line()
            fresh = self.path.with_name("fresh")
            fresh.write_bytes(self.content)
            fresh.rename(self.path)
        elif self.content is None:
            return
        elif what == "truncate":
            self.content = self.content[: len(self.content) // 2]
            os.truncate(self.path, len(self.content))
        elif what == "copytruncate":
            self.poll()
            self.content = self.line()
            os.truncate(self.path, 0)
            append(self.path, self.content)
        elif what == "delete":
            self.lose()
            self.path.unlink()
            self.content = None


@settings(max_examples=150, deadline=None)
@given(operations, st.integers(1, 40))
def test_no_line_is_lost_or_repeated(tmp_path_factory: pytest.TempPathFactory, todo: list[str], budget: int) -> None:
    run = Simulation(tmp_path_factory.mktemp("follow") / "a.log", budget)
    for what in todo:
        run.do(what)
    run.settle()
    for content in run.promised:
        assert any(generation.startswith(content) for generation in run.generations)
