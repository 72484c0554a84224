"""Faults of network file systems, made by a file system of the test's own (tests/faultfs.py)."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from itertools import count

import pytest

from tests.faultfs import FaultFs, fault_fs
from tests.tails.clocks import FakeClock
from trainmon.tails.content import CONFIRM_S, ZEROS_S
from trainmon.tails.follow import HAND_OVER_S, RETRY_FIRST_S, RETRY_LAST_S, FileEvent
from trainmon.tails.history import History
from trainmon.tails.tail import Tail

LINES = b"".join(b"step %d loss 2.5\n" % step for step in range(1000))


class Far:
    """A log behind the faulty mount, and what a history gave of it."""

    def __init__(self, mount: FaultFs, name: str) -> None:
        self.mount = mount
        self.here = mount.backing / name / "a.log"  # where it is written
        self.there = mount.point / name / "a.log"
        self.here.parent.mkdir()
        self.here.write_bytes(LINES)
        self.clock = FakeClock()
        self.history = History(self.there, self.clock, must_reopen=True)
        self.given = b""
        self.events: list[FileEvent] = []

    def append(self, data: bytes) -> None:
        with self.here.open("ab") as file:
            file.write(data)

    def poll(self, wait_s: float = 0.0) -> bytes:
        """What comes now."""
        self.clock.sleep(wait_s)
        data = b""
        while True:
            update = self.history.poll(1 << 20)
            self.events += update.events
            data += update.data
            if not update.more:
                self.given += data
                return data


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultFs]:
    place = tmp_path_factory.mktemp("faults")
    (place / "backing").mkdir()
    with fault_fs(place / "backing", place / "mount") as mounted:
        yield mounted


_names = count()


@pytest.fixture
def far(mount: FaultFs) -> Iterator[Far]:
    made = Far(mount, f"{next(_names)}")
    yield made
    mount.mend()
    made.history.release()


@pytest.mark.parametrize("operation", ["read", "open", "getattr", "lookup"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN, errno.EACCES])
def test_an_error_is_said_and_nothing_is_lost_or_repeated(far: Far, operation: str, code: int) -> None:
    assert far.poll() == LINES
    far.append(b"one\n")
    far.mount.set(errors={operation: code})
    for _ in range(5):
        assert far.poll(RETRY_LAST_S) == b""
        assert "a.log" in far.history.problem
        assert "\n" not in far.history.problem
    far.mount.set(errors={})
    assert far.poll(RETRY_LAST_S) == b"one\n"
    assert far.history.problem == ""
    assert far.events == [FileEvent.APPEARED]


def test_errors_from_the_start(far: Far) -> None:
    far.mount.set(errors={"open": errno.EIO})
    assert far.poll() == b""
    assert "EIO" in far.history.problem
    far.mount.set(errors={})
    assert far.poll(RETRY_FIRST_S) == LINES


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOTCONN])
def test_an_error_on_closing_changes_nothing(far: Far, code: int) -> None:
    far.mount.set(errors={"flush": code})
    assert far.poll() == LINES
    for _ in range(3):
        far.append(b"one\n")
        assert far.poll(1.0) == b"one\n"
    far.history.release()
    assert far.history.problem == ""


def test_a_stale_handle_is_opened_again_at_once(far: Far) -> None:
    far.poll()
    far.append(b"one\n")
    asked = far.mount.calls()["open"]
    far.mount.set(errors={"read": errno.ESTALE})
    assert far.poll() == b""
    assert far.mount.calls()["open"] == asked + 2
    assert "stale" in far.history.problem


def test_reads_that_end_early_are_read_on(far: Far) -> None:
    far.mount.set(read_bytes=777)
    assert far.poll() == LINES
    far.append(LINES)
    assert far.poll() == LINES
    assert far.poll() == b""
    assert far.events == [FileEvent.APPEARED]


def test_zeros_before_the_data_are_waited_for(far: Far) -> None:
    far.poll()
    far.append(b"new line\n" * 100)
    far.mount.set(zeros_from=len(LINES) + 200)
    assert far.poll() == (b"new line\n" * 100)[:200]
    assert far.poll(ZEROS_S / 2) == b""
    far.mount.set(zeros_from=None)
    assert far.poll() == (b"new line\n" * 100)[200:]
    assert far.events == [FileEvent.APPEARED]


def test_zeros_where_data_were_are_no_new_file(far: Far) -> None:
    far.poll()
    far.append(b"one\n")
    far.mount.set(zeros_from=100)
    assert far.poll() == b""
    assert far.poll(CONFIRM_S / 2) == b""
    far.mount.set(zeros_from=None)
    assert far.poll() == b"one\n"
    assert far.events == [FileEvent.APPEARED]


def test_zeros_that_stay_are_a_hole(far: Far) -> None:
    far.poll()
    far.append(bytes(5000) + b"after\n")
    assert far.poll() == b""
    assert far.poll(ZEROS_S) == bytes(5000) + b"after\n"


def test_an_append_that_is_seen_before_its_size(far: Far) -> None:
    far.poll()
    far.mount.set(known_bytes=len(LINES))
    far.append(b"one\n")
    assert far.poll() == b"one\n"
    for _ in range(3):
        assert far.poll(CONFIRM_S) == b""
    far.append(b"two\n")
    assert far.poll(60.0) == b"two\n"
    far.mount.set(known_bytes=None)
    assert far.poll() == b""
    assert far.events == [FileEvent.APPEARED]


def test_inode_numbers_that_change_are_no_new_file(far: Far) -> None:
    far.poll()
    far.append(b"one\n")
    far.mount.set(inode_offset=1000)
    assert far.poll() == b"one\n"
    assert far.events == [FileEvent.APPEARED]


def test_a_look_asks_for_the_status_once(far: Far) -> None:
    far.poll()
    far.poll()
    before = far.mount.calls()
    for _ in range(10):
        far.append(b"one\n")
        assert far.poll(1.0) == b"one\n"
    for name in ("open", "getattr"):
        assert far.mount.calls()[name] - before[name] == 10, name


def test_truncation_replacement_and_return(far: Far) -> None:
    far.poll()
    far.here.write_bytes(b"anew\n")
    assert far.poll() == b""
    assert far.poll(CONFIRM_S) == b"anew\n"
    assert far.events == [FileEvent.APPEARED, FileEvent.TRUNCATED]
    other = far.here.with_name("other")
    other.write_bytes(b"an other one\n")
    other.rename(far.here)
    assert far.poll() == b""
    assert b"".join(far.poll(HAND_OVER_S) for _ in range(3)) == b"an other one\n"
    far.here.unlink()
    assert far.poll() == b""
    far.here.write_bytes(b"back again\n")
    assert b"".join(far.poll(HAND_OVER_S) for _ in range(3)) == b"back again\n"
    assert far.events[2:] == [FileEvent.REPLACED, FileEvent.GONE, FileEvent.APPEARED, FileEvent.REPLACED]


def test_a_writer_that_keeps_its_offset(far: Far) -> None:
    far.poll()
    with far.here.open("r+b", buffering=0) as writer:
        writer.seek(0, os.SEEK_END)
        os.truncate(far.here, 0)
        writer.write(b"after the hole\n")
    assert b"".join(far.poll(ZEROS_S) for _ in range(4)) == bytes(len(LINES)) + b"after the hole\n"
    assert far.events == [FileEvent.APPEARED, FileEvent.TRUNCATED]


@pytest.mark.parametrize("how", ["rename", "copytruncate", "packed"])
def test_rotation(far: Far, how: str) -> None:
    far.poll()
    far.append(b"one\n")
    older = far.here.with_name("a.log.1")
    if how == "copytruncate":
        older.write_bytes(far.here.read_bytes())
        far.here.write_bytes(b"two\n")
    else:
        far.here.rename(older)
        far.here.write_bytes(b"two\n")
    if how == "packed":
        with gzip.open(f"{older}.gz", "wb") as file:
            file.write(older.read_bytes())
        older.unlink()
    for _ in range(5):
        far.poll(HAND_OVER_S)
    assert far.given == LINES + b"one\ntwo\n"
    assert far.events == [FileEvent.APPEARED, FileEvent.ROTATED]


def test_a_part_that_cannot_be_read_is_tried_and_named(far: Far) -> None:
    older = far.here.with_name("a.log.1")
    older.write_bytes(b"older\n" * 1000)
    far.mount.set(read_bytes=1000)
    first = far.history.poll(1000)
    assert first.data == (b"older\n" * 1000)[:1000]
    far.mount.set(errors={"read": errno.EIO})
    far.poll()
    assert "a.log" in far.history.problem
    far.mount.set(errors={})
    assert far.poll(RETRY_LAST_S) == LINES


def test_records_come_once_through_all_faults(far: Far) -> None:
    """The whole tail, faults taking turns."""
    tail = Tail(far.there, clock=far.clock, must_reopen=True)
    steps: list[float] = []
    faults: list[dict[str, int]] = [{}, {"read": errno.EIO}, {"open": errno.ESTALE}, {"lookup": errno.ENOTCONN}]
    for number in range(1000, 1200):
        far.append(b"step %d loss 2.5\n" % number)
        far.mount.set(errors=faults[number // 5 % 4])
        far.mount.set(read_bytes=100 + number if number % 3 else None)
        far.mount.set(known_bytes=far.here.stat().st_size - 40 if number % 7 == 0 else None)
        far.mount.set(zeros_from=far.here.stat().st_size - 30 if number % 11 == 0 else None)
        far.mount.set(inode_offset=number // 50)
        take(tail, steps)
        far.clock.sleep(1.0)
    far.mount.set(errors={}, known_bytes=None, zeros_from=None)
    for _ in range(3):
        far.clock.sleep(RETRY_LAST_S)
        take(tail, steps)
    assert steps == [float(step) for step in range(1200)]


def take(tail: Tail, steps: list[float]) -> None:
    more = True
    while more:
        update = tail.poll()
        assert not update.restarted
        steps.extend(step for block in update.parsed.blocks for step in block.steps.tolist())
        more = update.more
