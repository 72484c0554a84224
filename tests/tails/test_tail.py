from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.clocks import FakeClock
from tests.tails.formats_for_tests import detect, frame
from trainmon.tails.record import NoteKind, Parsed
from trainmon.tails.tail import QUIET_S, Tail, TailUpdate


def open_tail(path: Path, keep_lines: int = 2000) -> tuple[Tail, FakeClock]:
    clock = FakeClock()
    return Tail(path, clock=clock, detect=detect, keep_lines=keep_lines), clock


def steps(update: TailUpdate | Parsed) -> list[float]:
    parsed = update.parsed if isinstance(update, TailUpdate) else update
    return [step for block in parsed.blocks for step in block.steps.tolist()]


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_records_come_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2.5\n2 2.4\n3 2.")
    tail, _ = open_tail(path)
    assert steps(tail.poll()) == [1, 2]
    assert tail.poll().is_empty
    append(path, b"3\n")
    update = tail.poll()
    assert update.parsed.blocks[0].columns["loss"].tolist() == [2.3]
    assert update.parsed.blocks[0].lines.tolist() == [3]
    assert update.parsed.blocks[0].offsets.tolist() == [12]
    status = tail.status()
    assert (status.format, status.lines, status.records, status.problem) == ("pairs", 3, 3, "")
    assert status.read_bytes == status.size_bytes == 18
    assert status.newest_age_s is not None


def test_a_budget_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"".join(b"%d 2.5\n" % step for step in range(30_000)))
    tail, _ = open_tail(path)
    seen: list[float] = []
    polls = 0
    while True:
        update = tail.poll(10_000)
        seen += steps(update)
        polls += 1
        if not update.more:
            break
    assert seen == list(range(30_000))
    assert polls > 20


def test_a_truncated_file_restarts_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2.5\n2 2.4\nhold 3 2.3\n4 2.2")
    tail, _ = open_tail(path)
    tail.poll()
    path.write_bytes(b"7 1.5\n")
    rest = tail.poll()
    assert (steps(rest), rest.restarted, rest.more) == ([4, 3], False, True)
    update = tail.poll()
    assert (steps(update), update.restarted) == ([7], True)
    assert update.parsed.blocks[0].lines.tolist() == [1]
    assert [note.kind for note in update.parsed.notes] == [NoteKind.FILE]
    assert "truncated" in update.parsed.notes[0].text
    assert tail.status().records == 1


def test_held_records_come_once_the_file_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"hold 1 2.5\n")
    tail, clock = open_tail(path)
    assert steps(tail.poll()) == []
    clock.sleep(QUIET_S / 2)
    assert steps(tail.poll()) == []
    clock.sleep(QUIET_S)
    assert steps(tail.poll()) == [1]
    clock.sleep(QUIET_S)
    assert tail.poll().is_empty


def test_a_torn_last_line_is_read_at_the_end_only(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2.5\n2 2.4")
    tail, clock = open_tail(path)
    assert steps(tail.poll()) == [1]
    clock.sleep(60)
    assert steps(tail.poll()) == []
    assert steps(tail.finish()) == [2]
    assert tail.status().lines == 2


def test_the_format_is_looked_at_again_while_nothing_was_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"starting\nerror one\n")
    tail, _ = open_tail(path)
    first = tail.poll()
    assert tail.status().format == "pairs"
    assert [note.text for note in first.parsed.notes] == ["error one"]
    append(path, b"words after a while of nothing\n5 2.5\n")
    update = tail.poll()
    assert tail.status().format == "words"
    assert steps(update) == [5]
    assert update.parsed.notes == []
    assert update.parsed.blocks[0].lines.tolist() == [4]


def test_a_single_line_waits_for_its_end_or_for_quiet(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_bytes(b"[[1, 2.5], [2, 2.4]]")
    tail, clock = open_tail(path)
    assert steps(tail.poll()) == []
    clock.sleep(QUIET_S)
    found = steps(tail.poll()) + steps(tail.poll())
    assert found == [1, 2]


def test_a_document_gives_what_is_new_and_never_restarts(tmp_path: Path) -> None:
    path = tmp_path / "state.json"

    def write(rows: list[list[float]]) -> None:
        path.with_suffix(".new").write_text(json.dumps(rows) + "\n")
        path.with_suffix(".new").rename(path)

    write([[1, 2.5], [2, 2.4]])
    tail, clock = open_tail(path)
    first = tail.poll()
    assert steps(first) == [1, 2]
    clock.sleep(5)
    assert steps(tail.poll()) == []
    write([[1, 2.5], [2, 2.4], [3, 2.3]])
    clock.sleep(5)
    update = tail.poll()
    assert (steps(update), update.restarted) == ([3], False)
    write([[1, 2.5], [2, 9.9], [3, 9.8]])
    clock.sleep(5)
    assert steps(tail.poll()) == [2, 3]
    assert tail.status().records == 3


def test_a_half_written_document_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("[[1, 2.5],\n [2, 2.4]]\n")
    tail, clock = open_tail(path)
    assert steps(tail.poll()) == [1, 2]
    path.write_text("[[1, 2.5],\n [2, 2.4],\n [3,")
    clock.sleep(2)
    assert tail.poll().parsed.unreadable == 0
    assert tail.status().problem == ""
    clock.sleep(10)
    tail.poll()
    assert "half-written" in tail.status().problem
    path.write_text("[[1, 2.5],\n [2, 2.4],\n [3, 2.3]]\n")
    clock.sleep(10)
    assert steps(tail.poll()) == [3]
    assert tail.status().problem == ""


def test_a_document_moves_to_the_next_checkpoint(tmp_path: Path) -> None:
    old, new = tmp_path / "checkpoint-1.json", tmp_path / "checkpoint-2.json"
    old.write_text("[[1, 2.5]]\n")
    new.write_text("[[1, 2.5], [2, 2.4]]\n")
    tail, clock = open_tail(old)
    assert steps(tail.poll()) == [1]
    tail.move_to(new)
    clock.sleep(5)
    assert steps(tail.poll()) == [2]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_frames_are_kept_until_whole(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("frames") / "events"
    data = b"FRMS" + b"".join(frame(step, 2.5) for step in range(20))
    tail, _ = open_tail(path)
    seen = []
    place = 0
    for cut in cuts:
        append(path, data[place : place + cut])
        place += cut
        seen += steps(tail.poll())
    append(path, data[place:])
    seen += steps(tail.poll())
    seen += steps(tail.finish())
    assert seen == list(range(20))


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 300)
    (tmp_path / "log.gz").write_bytes(b"\x1f\x8b\x08\0" + bytes(range(200)))
    os.mkfifo(tmp_path / "fifo")
    for name, words in {
        "empty.log": "empty",
        "noise.bin": "binary",
        "log.gz": "zcat",
        "fifo": "pipe",
        "none.log": "not there yet",
    }.items():
        clock = FakeClock()
        tail = Tail(tmp_path / name, clock=clock, detect=lambda head, source: None)
        assert steps(tail.poll()) == []
        tail.finish()
        problem = tail.status().problem
        assert words in problem
        assert name in problem
        assert "\n" not in problem


def test_zeros_at_the_end_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"1 2.5\n")
    tail, _ = open_tail(path)
    tail.poll()
    append(path, b"\0" * 6)
    assert tail.poll().is_empty
    with path.open("r+b") as file:
        file.seek(6)
        file.write(b"2 2.4\n")
    assert steps(tail.poll()) == [2]


def test_a_hole_is_said_once_and_the_offsets_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.seek(8 << 20)
        file.write(b"1 2.5\n")
    tail, _ = open_tail(path)
    updates = [tail.poll() for _ in range(12)]
    blocks = [block for update in updates for block in update.parsed.blocks]
    assert blocks[0].offsets.tolist() == [8 << 20]
    notes = [note for update in updates for note in update.parsed.notes]
    assert [note.kind for note in notes] == [NoteKind.UNREADABLE]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_the_zeros_of_utf16_are_no_hole(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "train.log"
    path.write_bytes("".join(["\ufeff", *(f"{step} 2.5\n" for step in range(1, 9))]).encode(encoding))
    tail, _ = open_tail(path)
    update = tail.poll()
    assert steps(update) == [float(step) for step in range(1, 9)]
    assert [note.kind for note in update.parsed.notes] == []


def test_the_last_lines_are_kept_with_their_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\x1b[31mhello\x1b[0m\n1 2.5\nerror bad\n 10%\r 20%\r")
    tail, _ = open_tail(path, keep_lines=3)
    new = tail.poll().lines
    assert [(line.line_no, line.text, line.kind, line.step) for line in tail.lines] == [
        (2, "1 2.5", "metric", 1.0),
        (3, "error bad", "error", None),
        (4, " 10%", "text", None),
    ]
    assert new == tuple(tail.lines)
    append(path, b" 30%\n4 2.1\n")
    new = tail.poll().lines
    assert [(line.line_no, line.text) for line in new] == [(4, " 30%"), (5, "4 2.1")]
    assert [line.line_no for line in tail.lines] == [3, 4, 5]


def test_any_line_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        for step in range(200_000):
            file.write(b"%d 2.5\n" % step)
    tail, _ = open_tail(path)
    while tail.poll().more:
        pass
    for line_no in (1, 77_777, 200_000):
        lines = tail.line_at(line_no, 2)
        assert [(line.line_no, line.text) for line in lines] == [
            (number, f"{number - 1} 2.5") for number in range(max(line_no - 2, 1), min(line_no + 2, 200_000) + 1)
        ]
    path.unlink()
    assert tail.line_at(5) == []


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([b"1 2.5\n", b"2 2.4\r\n", b"text\n", b"3 1.5\r", b"\0\0", b"\n"]), max_size=20).map(
        b"".join
    ),
    st.lists(st.integers(1, 20), min_size=1, max_size=8),
)
def test_budgets_change_nothing(tmp_path_factory: pytest.TempPathFactory, data: bytes, budgets: list[int]) -> None:
    path = tmp_path_factory.mktemp("budget") / "a.log"
    path.write_bytes(data)

    def read(sizes: list[int]) -> list[tuple[float, int, int]]:
        tail, _ = open_tail(path)
        rows = []
        place = 0
        more = True
        while more:
            update = tail.poll(sizes[place % len(sizes)])
            more = update.more
            place += 1
            rows += rows_of(update)
        return rows + rows_of(tail.finish())

    assert read(budgets) == read([1 << 20])


def rows_of(update: TailUpdate) -> list[tuple[float, int, int]]:
    return [
        row
        for block in update.parsed.blocks
        for row in zip(block.steps.tolist(), block.lines.tolist(), block.offsets.tolist(), strict=True)
    ]
