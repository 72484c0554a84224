"""A search of a file's bytes finds what a search of all its lines finds, however it is cut into blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmon.monitor import file_search
from trainmon.monitor.file_search import FileSearch, Places
from trainmon.tails.content import file_blocks
from trainmon.tails.logpane import LineIndex, last_lines, read_lines
from trainmon.tails.status import LogLine

WORDS = ["needle", "NEEDLE", "need", "le", "x", "", "\x1b[31mneedle\x1b[0m", "progress 1%\rprogress 2%", "ünïcode"]


class Reading:
    """Lines of a file as the log pane reads them, and how many were asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked = 0

    def __call__(self, line: int, around: int) -> list[LogLine]:
        self.asked += 1
        return read_lines(self.path, LineIndex(), line, around)


def naive(path: Path, start: int, words: str, by: int) -> int | None:
    lines = read_lines(path, LineIndex(), 1, 10_000)
    fits = [one.line_no for one in lines if words.lower() in one.text.lower() and (one.line_no - start) * by > 0]
    return (min(fits) if by > 0 else max(fits)) if fits else None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=5).map("-".join), min_size=2, max_size=40),
    st.integers(1, 41),
    st.sampled_from(["needle", "Need", "e-n", "x", "progress 1", "2%"]),
    st.sampled_from([-1, 1]),
    st.integers(80, 200),
    st.booleans(),
)
def test_it_finds_what_a_search_of_the_lines_finds(
    tmp_path: Path, lines: list[str], start: int, words: str, by: int, block: int, ended: bool
) -> None:
    path = tmp_path / "train.log"
    path.write_text("step 1 loss 2\n" + "\n".join(lines) + ("\n" if ended else ""), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_search, "_BLOCK", block)
        patch.setattr(file_search, "_SPACING", 16)
        places = Places()
        for _ in range(2):  # the second time it knows places
            search = FileSearch(Reading(path), str(path), start, words, by, places)
            search.run()
            assert search.problem == ""
            assert search.found == naive(path, start, words, by)


def test_few_lines_are_read_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    with path.open("w") as file:
        for number in range(1, 300_001):
            file.write(f"step {number} loss 2.5\n" if number != 250_000 else "RuntimeError: NEEDLE here\n")
    reading, places = Reading(path), Places()
    search = FileSearch(reading, str(path), 5, "needle", 1, places)
    assert search.can_search()
    search.run()
    assert search.found == 250_000
    assert reading.asked <= 3
    back = FileSearch(reading, str(path), 300_000, "needle", -1, places)
    back.run()
    assert back.found == 250_000
    from_end = FileSearch(reading, str(path), -1, "needle", -1, Places())
    from_end.run()
    assert from_end.found == 250_000


@pytest.mark.parametrize("content", [b"\x1f\x8b\0\0", b"one line without an end", b"nul\0s\nmore\n"])
def test_what_its_bytes_do_not_tell_is_read_line_by_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.log"
    path.write_bytes(content)
    assert not FileSearch(Reading(path), str(path), 1, "needle", 1, Places()).can_search()
    assert not FileSearch(Reading(path), str(tmp_path / "none"), 1, "needle", 1, Places()).can_search()


def test_the_last_lines_are_numbered_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {number}\n" for number in range(200_000)) + "unfinished")
    found = last_lines(path, 3, path.stat().st_size, lambda offset: file_blocks(path, offset))
    assert [(one.line_no, one.text) for one in found] == [
        (-3, "line 199998"),
        (-2, "line 199999"),
        (-1, "unfinished"),
    ]
    short = tmp_path / "short.log"
    short.write_text("only\n")
    assert [one.text for one in last_lines(short, 9, 5, lambda offset: file_blocks(short, offset))] == ["only"]
