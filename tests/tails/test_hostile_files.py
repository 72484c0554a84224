"""Files as they must not be: too many, oddly named, cut anywhere, written by two, turned into something else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tails.clocks import FakeClock
from tests.tails.test_intake import Taker
from trainmon.tails.clock import SystemClock
from trainmon.tails.discover import discover
from trainmon.tails.follow import HAND_OVER_S, RETRY_LAST_S
from trainmon.tails.intake import Intake
from trainmon.tails.tail import Tail


def rows(first: int, last: int) -> bytes:
    return b"".join(b"step %d loss 2.5\n" % step for step in range(first, last))


class Read:
    """What a tail gave since the last restart."""

    def __init__(self, path: Path, clock: FakeClock | None = None, *, must_reopen: bool = False) -> None:
        self.clock = clock or FakeClock()
        self.tail = Tail(path, clock=self.clock, must_reopen=must_reopen)
        self.steps: list[float] = []
        self.restarts = 0

    def poll(self, wait_s: float = 0.0) -> list[float]:
        self.clock.sleep(wait_s)
        more = True
        while more:
            update = self.tail.poll()
            if update.restarted:
                self.restarts += 1
                self.steps = []
            self.steps += [step for block in update.parsed.blocks for step in block.steps.tolist()]
            more = update.more
        return self.steps


_FEW_DESCRIPTORS = """
import resource, sys
sys.path[:0] = {path!r}
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from pathlib import Path
from trainmon.tails.clock import SystemClock
from trainmon.tails.intake import Intake
root = Path(sys.argv[1])
intake = Intake([str(root)], clock=SystemClock())
counts = {{}}
grown = False
for _ in range(600):
    for item in intake.get(0.1):
        counts[item.run_name] = counts.get(item.run_name, 0) + item.update.parsed.records
    total = sum(counts.values())
    if total >= 300 * 20 and not grown:
        grown = True
        for log in root.glob("*/train.log"):
            with log.open("a") as file:
                file.write("step 20 loss 2.5\\n")
    if total >= 300 * 21:
        break
print(len(counts), sum(counts.values()), *intake.problems)
"""


def test_three_hundred_logs_with_sixty_four_descriptors(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"run{number}").mkdir()
        (tmp_path / f"run{number}" / "train.log").write_bytes(rows(0, 20))
    command = [sys.executable, "-c", _FEW_DESCRIPTORS.format(path=sys.path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert done.stdout.split()[:2] == ["300", "6300"]


@pytest.fixture
def quick_place(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: a hundred thousand files take a disk long."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        yield Path(directory)


def test_a_hundred_thousand_files(quick_place: Path) -> None:
    """One run among data sets: found, and the rest is not read."""
    for folder in range(20):
        place = f"{quick_place}/data{folder}"
        os.mkdir(place)  # noqa: PTH102 - 100 000 Path objects would take longer than the files
        for number in range(5000):
            os.mknod(f"{place}/{number:05d}.txt")
    log = quick_place / "data7" / "train.log"
    log.write_bytes(rows(0, 20))
    found = discover([str(quick_place)], quick_place)
    assert [file.path for run in found.runs for file in run.files] == [log]
    assert "(21 directories, 100021 files)" in found.searched


@pytest.mark.parametrize(
    "raw",
    [b"with space", b"new\nline", b"\xff\xfe\x80", b"-rf", b"$(touch x)", b"'\"`", b"\x1b[31mred", "\u202e".encode()],
)
@pytest.mark.parametrize("is_folder", [True, False])
def test_odd_names_are_read_and_shown_printable(tmp_path: Path, raw: bytes, is_folder: bool) -> None:
    name = os.fsdecode(raw)
    log = tmp_path / name / "train.log" if is_folder else tmp_path / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(rows(0, 20))
    intake = Intake([str(tmp_path)], clock=SystemClock())
    taker = Taker(intake)
    try:
        taker.until(lambda items: sum(item.update.parsed.records for item in items) == 20)
        with log.open("ab") as file:
            file.write(rows(20, 22))
        taker.until(lambda items: sum(item.update.parsed.records for item in items) == 22)
        assert {item.run_name for item in taker.items} == {run.name for run in intake.runs}
        assert all(run.name.isprintable() for run in intake.runs)
        assert intake.problems == ()
    finally:
        intake.stop()
    assert [path.name for path in tmp_path.iterdir()] == [log.parent.name if is_folder else log.name]


@pytest.mark.parametrize("must_reopen", [False, True])
def test_a_log_cut_at_any_byte_and_written_on(tmp_path: Path, must_reopen: bool) -> None:
    whole = rows(0, 6)
    for cut in range(len(whole)):
        path = tmp_path / f"{cut}.log"
        path.write_bytes(whole)
        read = Read(path, must_reopen=must_reopen)
        assert read.poll() == list(range(6))
        os.truncate(path, cut)
        for _ in range(3):
            read.poll(1.1)
        with path.open("ab") as file:
            file.write(whole[cut:] + rows(6, 8))
        for _ in range(3):
            read.poll(1.1)
        read.tail.release()
        assert read.steps == list(range(8)), cut


@pytest.mark.parametrize("must_reopen", [False, True])
def test_a_mount_that_goes_away_in_mid_line_and_comes_back(tmp_path: Path, must_reopen: bool) -> None:
    whole = rows(0, 8)
    for cut in range(whole.rindex(b"step 6"), len(whole)):
        folder, away = tmp_path / f"{cut}", tmp_path / f"{cut}.away"
        folder.mkdir()
        path = folder / "a.log"
        path.write_bytes(whole[:cut])
        read = Read(path, must_reopen=must_reopen)
        read.poll()
        folder.rename(away)
        for wait_s in (5.0, 20.0, 20.0, 20.0):  # quiet for longer than a reader waits for the end of a line
            read.poll(wait_s)
        with (away / "a.log").open("ab") as file:
            file.write(whole[cut:] + rows(8, 10))
        away.rename(folder)
        for _ in range(3):
            read.poll(RETRY_LAST_S)
        read.tail.release()
        assert read.steps == list(range(10)), whole[:cut]
        assert read.tail.status().unreadable == read.restarts == 0


def test_two_handles_that_append(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("ab", buffering=0) as one, path.open("ab", buffering=0) as two:
        read = Read(path)
        for number in range(0, 100, 2):
            one.write(rows(number, number + 1))
            two.write(rows(number + 1, number + 2)[:7])
            read.poll(0.1)
            two.write(rows(number + 1, number + 2)[7:])
        assert read.poll(1.1) == list(range(100))
        assert read.restarts == 0


def test_two_handles_that_write_over_each_other_end_as_the_file_reads(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb", buffering=0) as one, path.open("r+b", buffering=0) as two:
        read = Read(path)
        for number in range(100, 150):
            one.write(rows(number, number + 1))
            if number % 3 == 0:
                two.write(rows(number + 100, number + 101))
            read.poll(0.1)
        for _ in range(3):
            read.poll(1.1)
    assert read.steps == Read(path).poll()


def test_a_clock_that_jumps(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(rows(0, 10))

    class Jumping(FakeClock):
        jump_s = 0.0

        def wall(self) -> float:
            return super().wall() + self.jump_s

    clock = Jumping()
    read = Read(path, clock)
    for number, jump_s in enumerate((0.0, -1e6, 1e6, -3e9, 3600.0, 0.0)):
        clock.jump_s = jump_s
        with path.open("ab") as file:
            file.write(rows(10 + number, 11 + number))
        assert read.poll(1.1) == list(range(11 + number))
        age_s = read.tail.status().newest_age_s
        assert age_s is not None
        assert age_s >= 0.0
    assert read.restarts == 0


def fifo(path: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def directory(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [fifo, listening_socket, directory, endless, circle])
@pytest.mark.parametrize("must_reopen", [False, True])
def test_a_log_that_turns_into_something_else_and_back(
    tmp_path: Path, make: Callable[[Path], None], must_reopen: bool
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(rows(0, 10))
    read = Read(path, must_reopen=must_reopen)
    assert read.poll() == list(range(10))
    path.unlink()
    make(path)
    for _ in range(3):
        assert read.poll(RETRY_LAST_S) == list(range(10))
    assert "a.log" in read.tail.status().problem
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    path.write_bytes(rows(0, 12))
    for _ in range(4):
        read.poll(max(RETRY_LAST_S, HAND_OVER_S))
    assert read.steps == list(range(12))
    assert read.tail.status().problem == ""


def test_what_is_called_as_a_log_and_is_none_is_named_in_a_search(tmp_path: Path) -> None:
    (tmp_path / "ok.jsonl").write_text('{"step": 1, "loss": 2.0}\n' * 3)
    os.mkfifo(tmp_path / "train.log")
    os.mkfifo(tmp_path / "notes")
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as at:  # a name that fits
        at.bind(f"{short}/s")
        Path(f"{short}/s").rename(tmp_path / "metrics.jsonl")
        found = discover([str(tmp_path)], tmp_path)
    assert [file.path.name for run in found.runs for file in run.files] == ["ok.jsonl"]
    assert sorted(problem.partition(": ")[0] for problem in found.problems) == [
        str(tmp_path / "metrics.jsonl"),
        str(tmp_path / "train.log"),
    ]
