"""What tells one file from another when all that is easy to look at is the same, and how often trouble is looked at."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from tests.tails.clocks import FakeClock
from tests.tails.test_follow import append, follower, read
from trainmon.tails.follow import HAND_OVER_S, RETRY_FIRST_S, RETRY_LAST_S, FileEvent, Follower


def dated(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


def test_a_rewrite_within_one_tick_of_the_time_stamps_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    follow, clock = follower(path)
    now = float(int(clock.wall()))
    dated(path, now)
    assert read(follow, clock)[0] == b"one\n"
    assert read(follow, clock)[0] == b""
    with path.open("r+b") as file:
        file.write(b"two\n")
    dated(path, now)
    assert read(follow, clock) == (b"two\n", [FileEvent.TRUNCATED])


def test_another_file_of_the_same_size_and_time_is_another_file(tmp_path: Path) -> None:
    path, other = tmp_path / "a.log", tmp_path / "b.log"
    path.write_bytes(b"one\n")
    other.write_bytes(b"two\n")
    follow, clock = follower(path)
    for each in (path, other):
        dated(each, float(int(clock.wall())) - 1000)
    read(follow, clock)
    other.replace(path)
    assert read(follow, clock) == (b"", [])
    assert read(follow, clock, HAND_OVER_S) == (b"two\n", [FileEvent.REPLACED])


def test_trouble_is_looked_at_ever_more_seldom_but_within_some_seconds(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.mkdir()
    follow, clock = follower(path)
    looked = []
    for _ in range(600):
        follow.problem = ""
        follow.poll(100)
        if follow.problem:
            looked.append(clock.monotonic())
        clock.sleep(0.1)
    pauses = [later - earlier for earlier, later in pairwise(looked)]
    assert abs(pauses[0] - RETRY_FIRST_S) < 0.2
    assert pauses == sorted(pauses) or max(pauses) - min(pauses[-3:]) < 0.2
    assert abs(pauses[-1] - RETRY_LAST_S) < 0.2
    path.rmdir()
    path.write_bytes(b"one\n")
    assert read(follow, clock, RETRY_LAST_S)[0] == b"one\n"
    assert follow.problem == ""


def test_zeros_long_before_the_end_of_a_remote_file_are_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    data = b"one\n" + bytes(64) + b"two\n" * (3 << 20)
    path.write_bytes(data)
    clock = FakeClock()
    assert len(read(Follower(path, clock, must_reopen=True), clock)[0]) == len(data)
    append(path, b"x" + bytes(64))
    follow = Follower(path, clock, must_reopen=True)
    assert len(read(follow, clock)[0]) == len(data) + 1  # those at the end may be data on its way
    assert read(follow, clock, 4.0)[0] == bytes(64)
