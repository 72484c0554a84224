from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.clocks import FakeClock
from trainmon.tails import parts as parts_module
from trainmon.tails.clock import SystemClock
from trainmon.tails.follow import GRACE_S, HAND_OVER_S, RESTARTS, FileEvent
from trainmon.tails.history import History
from trainmon.tails.parts import older_parts
from trainmon.tails.tail import Tail

BUDGET = 1 << 20


def names(path: Path) -> list[str]:
    return [Path(part.path).name for part in older_parts(path, 1e12)]


def read(
    history: History, clock: FakeClock, wait_s: float = 0.0, budget: int = BUDGET
) -> tuple[bytes, list[FileEvent]]:
    """Polls until nothing more is there at once; offsets must go on without a gap."""
    clock.sleep(wait_s)
    data, events = b"", []
    while True:
        expected = history.offset
        update = history.poll(budget)
        events += update.events
        if RESTARTS & set(update.events):
            data, expected = b"", 0
        assert update.offset == expected
        data += update.data
        if not update.more:
            return data, events


def test_parts_are_found_the_oldest_first(tmp_path: Path) -> None:
    for name in (
        *("a.log", "a.log.1", "a.log.2.gz", "a.log.10.gz", "a.log.1.gz", "a.log.x", "a.log.1.bak", "a.log.00"),
        *(
            "a.log-20260130.gz",
            "a.log-20260131",
            "a.log.2026-01-31_12",
            "b.log.1",
            "aa.log.1",
            "a.log.old",
            "a.log.1.2",
        ),
    ):
        (tmp_path / name).touch()
    assert names(tmp_path / "a.log") == [
        *("a.log-20260130.gz", "a.log-20260131", "a.log.2026-01-31_12", "a.log.10.gz", "a.log.2.gz", "a.log.1"),
    ]
    assert names(tmp_path / "c.log") == []


def test_numbers_of_ranks_are_no_rotations(tmp_path: Path) -> None:
    for name in ("log", "log.0", "log.1", "log.2", "events.out.tfevents.1.host", "events.out.tfevents.1.host.1"):
        (tmp_path / name).touch()
    assert names(tmp_path / "log") == []
    assert names(tmp_path / "events.out.tfevents.1.host") == []


def test_all_parts_are_one_history_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with gzip.open(f"{path}.2.gz", "wb") as file:
        file.write(b"one\n" * 100_000)
    with gzip.open(f"{path}.2.gz", "ab") as file:  # a second member
        file.write(b"two\n")
    (tmp_path / "a.log.1").write_bytes(b"three\n")
    path.write_bytes(b"four\n")
    clock = FakeClock()
    history = History(path, clock)
    whole = b"one\n" * 100_000 + b"two\nthree\nfour\n"
    assert read(history, clock, budget=999) == (whole, [FileEvent.APPEARED])
    assert read(history, clock) == (b"", [])
    assert history.size == history.offset == len(whole)
    for offset in (0, 77, 400_000, 400_003, 400_004, 400_010, len(whole) - 1, len(whole)):
        assert b"".join(history.blocks(offset)) == whole[offset:]


@pytest.mark.parametrize("how", ["rename", "rename, no new file yet", "copytruncate", "packed at once", "packed later"])
def test_a_rotation_while_watching_loses_and_repeats_nothing(tmp_path: Path, how: str) -> None:
    path, older = tmp_path / "a.log", tmp_path / "a.log.1"
    writer = path.open("ab", buffering=0)
    writer.write(b"one\n" * 1000)
    clock = FakeClock()
    history = History(path, clock)
    read(history, clock)
    writer.write(b"two\n")
    if how == "copytruncate":
        shutil.copy(path, older)
        os.truncate(path, 0)
        assert read(history, clock) == (b"", [])
        writer.write(b"three\n")
    else:
        path.rename(older)
        writer.write(b"two and a half\n")
        if how == "packed at once":
            writer.close()
            pack(older)
        if how == "rename, no new file yet":
            assert read(history, clock)[0] == b"two\ntwo and a half\n"
            assert read(history, clock, 2 * GRACE_S)[0] == b""
            assert read(history, clock, 2 * GRACE_S)[0] == b""
            writer.write(b"late\n")
        path.write_bytes(b"three\n")
    data = b"".join(read(history, clock, HAND_OVER_S)[0] for _ in range(3))
    expected = {
        "copytruncate": b"two\nthree\n",
        "rename, no new file yet": b"late\nthree\n",
    }.get(how, b"two\ntwo and a half\nthree\n")
    assert data == expected
    if how == "packed later":
        pack(older)
    with path.open("ab") as file:
        file.write(b"four\n")
    assert read(history, clock) == (b"four\n", [])
    assert b"".join(history.blocks(0)).endswith(b"three\nfour\n")
    assert b"".join(history.blocks(4000)) == b"".join(history.blocks(0))[4000:]


def pack(path: Path) -> None:
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
    path.unlink()


def test_what_was_rotated_twice_between_two_looks_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    clock = FakeClock()
    history = History(path, clock)
    assert read(history, clock)[0] == b"one\n"
    path.rename(tmp_path / "a.log.2")
    (tmp_path / "a.log.1").write_bytes(b"two\n")
    path.write_bytes(b"three\n")
    assert read(history, clock) == (b"", [])
    assert read(history, clock, HAND_OVER_S) == (b"two\nthree\n", [FileEvent.ROTATED])


def test_a_run_written_anew_is_a_restart_although_parts_lie_there(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    (tmp_path / "a.log.1").write_bytes(b"one\n")
    path.write_bytes(b"two\n")
    clock = FakeClock()
    history = History(path, clock)
    assert read(history, clock)[0] == b"one\ntwo\n"
    path.write_bytes(b"new\n")
    assert read(history, clock) == (b"new\n", [FileEvent.TRUNCATED])
    assert history.offset == history.size == 4


@pytest.mark.parametrize("damage", ["cut", "garbled", "bomb", "no gzip", "empty", "directory"])
def test_a_damaged_part_is_named_and_the_rest_read(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, packed = tmp_path / "a.log", tmp_path / "a.log.1.gz"
    data = gzip.compress(os.urandom(100_000))
    if damage == "bomb":
        monkeypatch.setattr(parts_module, "MAX_UNPACKED_BYTES", 1 << 20)
        data = gzip.compress(bytes(100 << 20))
    if damage == "garbled":
        data = data[:50_000] + bytes(1000) + data[51_000:]
    contents = {"cut": data[:50_000], "no gzip": b"plain\n", "empty": b""}
    if damage == "directory":
        packed.mkdir()
    else:
        packed.write_bytes(contents.get(damage, data))
    path.write_bytes(b"present\n")
    clock = FakeClock()
    history = History(path, clock)
    given, _ = read(history, clock, budget=65536)
    assert given.endswith(b"present\n")
    assert len(given) <= (1 << 20) + len(b"present\n")
    if damage != "empty":
        assert "a.log.1.gz" in history.problem
        assert "\n" not in history.problem
    else:
        assert history.problem == ""
    assert read(history, clock) == (b"", [])


def test_a_tail_reads_on_through_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n" + "".join(f"{step},2.5\n" for step in range(100)))
    tail = Tail(path, clock=SystemClock())
    steps: list[float] = []

    def take() -> None:
        more = True
        while more:
            update = tail.poll()
            assert not update.restarted
            steps.extend(step for block in update.parsed.blocks for step in block.steps.tolist())
            more = update.more

    take()
    path.rename(tmp_path / "metrics.csv.1")
    path.write_text("step,loss\n" + "".join(f"{step},2.5\n" for step in range(100, 120)))
    while len(steps) < 120:
        take()
    assert steps == [float(step) for step in range(120)]
    assert [line.text for line in tail.line_at(102, 1)] == ["99,2.5", "step,loss", "100,2.5"]
    with path.open("a") as file:
        file.write("120,2.5\n")
    take()
    assert steps[-1] == 120.0


operations = st.lists(
    st.sampled_from(["append", "append", "rename", "create", "copytruncate", "pack", "poll", "turn"]), max_size=40
)


class Rotation:
    """A log under rotation that keeps all its parts, and what a history gave of it."""

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = path, budget
        self.clock = FakeClock()
        self.written = b""
        self.given = b""
        self.number = 0
        self.append()
        self.history = History(path, self.clock)

    def append(self) -> None:
        self.number += 1
        line = b"line %d\n" % self.number
        with self.path.open("ab") as file:
            file.write(line)
        self.written += line

    def shift(self) -> None:
        """log.1 becomes log.2 and so on, packed or not."""
        there = sorted((int(p.name.split(".")[2]), p) for p in self.path.parent.glob("a.log.*"))
        for number, part in reversed(there):
            part.rename(part.with_name(part.name.replace(f".{number}", f".{number + 1}", 1)))

    def turn(self) -> None:
        """One poll with a small budget."""
        update = self.history.poll(self.budget)
        assert not RESTARTS & set(update.events)
        self.given += update.data

    def poll(self) -> None:
        data, events = read(self.history, self.clock, 1.1, self.budget)
        assert not RESTARTS & set(events)
        self.given += data

    def do(self, what: str) -> None:
        if what == "rename":
            if self.path.exists() and self.path.stat().st_size:
                self.shift()
                self.path.rename(f"{self.path}.1")
        elif what == "copytruncate":
            if self.path.exists() and self.path.stat().st_size:
                self.poll()  # what was not read of a log that is emptied twice between looks cannot be told apart
                self.shift()
                shutil.copy(self.path, f"{self.path}.1")
                os.truncate(self.path, 0)
        elif what == "pack":
            plain = [p for p in self.path.parent.glob("a.log.*") if p.suffix != ".gz"]
            if plain:
                pack(plain[0])
        elif what == "create":
            self.path.touch()
        else:
            getattr(self, what)()


@settings(max_examples=200, deadline=None)
@given(operations, st.integers(1, 40))
def test_rotations_of_any_kind_lose_and_repeat_nothing(
    tmp_path_factory: pytest.TempPathFactory, todo: list[str], budget: int
) -> None:
    log = Rotation(tmp_path_factory.mktemp("rotation") / "a.log", budget)
    for what in todo:
        log.do(what)
    log.append()
    for _ in range(4):
        log.poll()
    assert log.given == log.written
