"""What was read of a large log comes back as it was, for that state of that file only, from a private place."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tails.clocks import FakeClock
from trainmon.tails import parsed_cache, read_once
from trainmon.tails.discover import RunFile, RunFiles
from trainmon.tails.packing import pack, unpack
from trainmon.tails.read_once import read_all
from trainmon.tails.reader import IntakeItem

CLOCK = FakeClock()


@pytest.fixture(autouse=True)
def _small_logs_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRAINMON_CACHE", raising=False)
    monkeypatch.setattr(read_once, "_LARGE_BYTES", 1)


def write(path: Path, count: int, first_loss: float = 2.0) -> Path:
    records = [
        {"step": step, "loss": first_loss if step == 0 else 2 + step % 7 / 10, "lr": 1e-3, "note": "x" * (step % 3)}
        for step in range(count)
    ]
    records[count // 2]["loss"] = math.nan
    words = "step 5 of many\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + words)
    return path


def read(path: Path) -> list[IntakeItem]:
    files = RunFiles("run", str(path), (RunFile(path, "metrics"),))
    return list(read_all(files, CLOCK))


def told(items: list[IntakeItem]) -> tuple[object, ...]:
    """All that the items say, however it is cut into items."""
    blocks = [block for item in items for block in item.update.parsed.blocks]
    keys = sorted({key for block in blocks for key in block.columns})
    columns = {
        key: [
            (repr(value), mark)
            for block in blocks
            if key in block.columns
            for value, mark in zip(block.columns[key].tolist(), block.mark_of(key).tolist(), strict=True)
        ]
        for key in keys
    }
    places = [
        np.concatenate([getattr(block, name) for block in blocks]).tolist() for name in ("steps", "offsets", "lines")
    ]
    said = [(item.update.parsed.notes, item.update.parsed.facts) for item in items]
    notes = [note for own, _ in said for note in own], [fact for _, own in said for fact in own]
    counts = [sum(getattr(item.update.parsed, name) for item in items) for name in ("lines", "records", "unreadable")]
    sources = {block.source for block in blocks}
    return columns, places, notes, counts, items[-1].update.lines, items[-1].status, items[-1].is_ended, sources


def is_from_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the log is given without a look at its lines."""
    with monkeypatch.context() as patch:
        patch.setattr(read_once, "_whole", lambda source: iter([IntakeItem("", "", *_nothing(), source.role)]))
        return bool(read(path)[-1].update.parsed.records)


def _nothing() -> tuple[parsed_cache.TailUpdate, parsed_cache.FileStatus]:
    return parsed_cache.TailUpdate(parsed_cache.Parsed()), parsed_cache.FileStatus("", "", 0, 0, 0, 0, 0)


def test_what_comes_back_is_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log.jsonl", 5000)
    first = told(read(log))
    assert is_from_cache(log, monkeypatch)
    assert repr(told(read(log))) == repr(first)
    monkeypatch.setenv("TRAINMON_CACHE", "off")
    assert not is_from_cache(log, monkeypatch)
    assert repr(told(read(log))) == repr(first)


def test_many_records_are_kept_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_cache, "_ITEM_RECORDS", 1000)
    monkeypatch.setattr(read_once, "BUDGET_BYTES", 10_000)
    log = write(tmp_path / "log.jsonl", 5000)
    first = told(read(log))
    again = read(log)
    assert len(again) > 3
    assert repr(told(again)) == repr(first)


@pytest.mark.parametrize("change", ["grown", "one byte", "other file", "code"])
def test_another_state_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    log = write(tmp_path / "log.jsonl", 500)
    read(log)
    assert is_from_cache(log, monkeypatch)
    before = log.stat()
    if change == "grown":
        with log.open("a") as file:
            file.write('{"step": 500, "loss": 1.5}\n')
    elif change == "one byte":
        write(log, 500, first_loss=3.0)
        os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "other file":
        log.rename(tmp_path / "old.jsonl")
        write(log, 500)
        os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        monkeypatch.setattr(parsed_cache, "_code", lambda: "newer")
    assert not is_from_cache(log, monkeypatch)


def test_a_link_to_the_log_is_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log.jsonl", 500)
    read(log)
    (tmp_path / "link.jsonl").symlink_to(log)
    assert is_from_cache(tmp_path / "link.jsonl", monkeypatch)
    assert told(read(tmp_path / "link.jsonl"))[-1] == {str(tmp_path / "link.jsonl")}


def test_entries_are_private_and_made_in_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write(tmp_path / "log.jsonl", 500)
    read(log)
    (entry,) = parsed_cache.folder().iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    assert parsed_cache.folder().stat().st_mode & 0o777 == 0o700
    entry.chmod(0o666)
    assert not is_from_cache(log, monkeypatch)
    entry.unlink()
    parsed_cache.folder().chmod(0o777)
    read(log)
    assert not list(parsed_cache.folder().iterdir())


def test_reading_that_ends_early_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_once, "BUDGET_BYTES", 1000)
    log = write(tmp_path / "log.jsonl", 500)
    reading = read_all(RunFiles("run", str(log), (RunFile(log, "metrics"),)), CLOCK)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert not list(parsed_cache.folder().iterdir())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """A log, the entry that the cache has of it, and the entry's bytes."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("TRAINMON_CACHE", raising=False)
        patch.setattr(read_once, "_LARGE_BYTES", 1)
        log = write(folder / "log.jsonl", 60)
        read(log)
        (entry,) = parsed_cache.folder().iterdir()
        return log, entry, entry.read_bytes()


def is_believed(kept: tuple[Path, Path, bytes], content: bytes) -> bool:
    """Whether the log is taken from an entry of these bytes."""
    log, entry, _ = kept
    entry.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(log.parent / "cache"))
        patch.delenv("TRAINMON_CACHE", raising=False)
        patch.setattr(read_once, "_LARGE_BYTES", 1)
        return is_from_cache(log, patch)


@given(
    cut=st.just(1.0) | st.floats(0, 0.9999),
    flips=st.lists(st.tuples(st.floats(0, 0.9999), st.integers(1, 255)), max_size=3),
)
def test_a_damaged_entry_is_no_entry(
    kept: tuple[Path, Path, bytes], cut: float, flips: list[tuple[float, int]]
) -> None:
    """Cut anywhere, or bytes flipped anywhere: in the numbers too, which would be as good as any others."""
    content = bytearray(kept[2])
    for place, flip in flips:
        content[int(place * len(content))] ^= flip
    damaged = bytes(content[: int(cut * len(content))])
    assert is_believed(kept, damaged) == (damaged == kept[2])


def test_each_byte_of_an_entry_counts(kept: tuple[Path, Path, bytes]) -> None:
    whole = kept[2]
    assert is_believed(kept, whole)
    for at in (*range(0, len(whole) - 64, 37), *range(len(whole) - 64, len(whole))):
        content = bytearray(whole)
        content[at] ^= 1 << at % 8
        assert not is_believed(kept, bytes(content)), at
    assert not is_believed(kept, whole + b"\0")
    assert not is_believed(kept, whole[:-1])


def test_a_folder_in_the_place_of_an_entry_is_none_and_holds_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path / "log.jsonl", 500)
    read(log)
    (entry,) = parsed_cache.folder().iterdir()
    entry.unlink()
    entry.mkdir(mode=0o700)
    before = sorted(Path("/proc/self/fd").iterdir())
    assert not is_from_cache(log, monkeypatch)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_the_longest_unused_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [write(tmp_path / f"log{index}.jsonl", 3000) for index in range(3)]
    for index, log in enumerate(logs):
        read(log)
        for entry in parsed_cache.folder().iterdir():
            os.utime(entry, (entry.stat().st_atime, entry.stat().st_mtime - 100))
        if index == 1:
            read(logs[0])  # used again
    size = max(entry.stat().st_size for entry in parsed_cache.folder().iterdir())
    monkeypatch.setenv("TRAINMON_CACHE_MB", str(3.5 * size / (1 << 20)))
    read(write(tmp_path / "log3.jsonl", 3000))
    assert [is_from_cache(log, monkeypatch) for log in logs] == [True, False, True]


@given(
    st.lists(st.floats(), max_size=30).map(np.array)
    | st.lists(st.integers(-(2**62), 2**62 - 1), max_size=30).map(lambda values: np.array(values, np.int64))
    | st.lists(st.integers(0, 255), max_size=30).map(lambda values: np.array(values, np.uint8))
    | st.tuples(st.integers(-5, 5), st.integers(-3, 90_000), st.integers(0, 40)).map(
        lambda told: told[0] + told[1] * np.arange(told[2])
    )
    | st.sampled_from([np.array([-0.0, -0.0]), np.array([0.0, -0.0]), np.array([math.inf, math.inf]), np.full(9, 2.5)])
)
def test_packed_arrays_come_back_to_the_bit(array: np.ndarray) -> None:
    array = array.astype(np.float64) if not len(array) else array
    out = bytearray(b"before")
    back = unpack(pack(array, out), bytes(out))
    assert back.dtype == array.dtype
    if array.dtype.kind == "f":  # any NaN is as good as another
        back, array = np.where(np.isnan(back), 7.0, back), np.where(np.isnan(array), 7.0, array)
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize("bad", [["raw", "<f8", 9, 0], ["raw", "|O", 1, 0], ["even", "<f8", -1, 0.0, 1.0], ["?"], []])
def test_what_was_not_packed_is_refused(bad: list[object]) -> None:
    with pytest.raises(ValueError):
        unpack(bad, b"12345678")


def test_a_change_between_the_samples_is_told_by_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "log.jsonl", 20_000)
    read(path)
    assert is_from_cache(path, monkeypatch)
    size = path.stat().st_size
    data = path.read_bytes()
    place = data.index(b'"lr"', size * 20 // 64 + 5000)
    assert place < size * 21 // 64
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b'"LR"')
    os.utime(path, (1e9, 1e9))
    assert not is_from_cache(path, monkeypatch)


def test_what_a_crash_left_goes_after_a_day(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", 50)
    read(path)
    old, fresh = (parsed_cache.folder() / name for name in (".old.tmp", ".fresh.tmp"))
    for left, age_s in ((old, 90_000.0), (fresh, 100.0)):
        left.write_bytes(b"half")
        os.utime(left, (CLOCK.wall() - age_s, CLOCK.wall() - age_s))
    read(write(tmp_path / "other.jsonl", 60))
    assert (old.exists(), fresh.exists()) == (False, True)
