"""Following on a real network mount: sshfs through an sshd of the test's own, where inotify sees nothing."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.sshd import Sshd, sshfs_mount
from tests.tails.test_intake import Taker
from trainmon.tails.clock import SystemClock
from trainmon.tails.fstype import mount_behind
from trainmon.tails.intake import Intake

_names = count()


def rows(first: int, last: int) -> bytes:
    return b"".join(b"step %d loss 2.5\n" % step for step in range(first, last))


@pytest.fixture(scope="module")
def places(sshd: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A directory where it is written to, and where it is mounted."""
    root = tmp_path_factory.mktemp("network")
    (root / "remote").mkdir()
    with sshfs_mount(sshd, root / "remote", root / "mount", options=("cache=no",)) as mount:
        yield root / "remote", mount


class Run:
    """A log that is written behind the mount, and the steps that came through it."""

    def __init__(self, places: tuple[Path, Path]) -> None:
        name = f"{next(_names)}"
        self.log = places[0] / name / "train.log"
        self.log.parent.mkdir()
        self.log.write_bytes(rows(0, 1000))
        self.seen = places[1] / name / "train.log"
        self.intake = Intake([str(self.seen)], clock=SystemClock())
        self.taker = Taker(self.intake)
        self.until(1000)

    @property
    def steps(self) -> list[float]:
        blocks = [block for item in self.taker.items for block in item.update.parsed.blocks]
        return [step for block in blocks for step in block.steps.tolist()]

    @property
    def said(self) -> str:
        return " ".join(note.text for item in self.taker.items for note in item.update.parsed.notes)

    def until(self, number: int) -> None:
        """Waits until so many records have come."""
        self.taker.until(lambda _: len(self.steps) >= number)

    def append(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)


@pytest.fixture
def run(places: tuple[Path, Path]) -> Iterator[Run]:
    made = Run(places)
    yield made
    made.intake.stop()


def test_the_mount_is_known_for_one_that_must_be_polled(run: Run) -> None:
    assert mount_behind(run.seen).fstype == "fuse.sshfs"
    assert mount_behind(run.seen).may_hang
    assert run.taker.items[-1].status.watched_by == "poll"
    run.append(rows(1000, 1010))
    run.until(1010)
    assert run.steps == list(range(1010))


def rename(run: Run) -> None:
    run.log.rename(run.log.with_name("train.log.1"))
    run.log.write_bytes(rows(1000, 1010))


def copytruncate(run: Run) -> None:
    shutil.copy(run.log, run.log.with_name("train.log.1"))
    run.log.write_bytes(rows(1000, 1010))


def packed(run: Run) -> None:
    with gzip.open(run.log.with_name("train.log.1.gz"), "wb") as file:
        file.write(run.log.read_bytes())
    run.log.unlink()
    run.log.write_bytes(rows(1000, 1010))


def rsynced(run: Run) -> None:
    """A longer copy is renamed over the log."""
    copy = run.log.with_name(".train.log.aBcDeF")
    copy.write_bytes(rows(0, 1010))
    copy.rename(run.log)


def back_again(run: Run) -> None:
    away = run.log.with_name("away")
    run.log.rename(away)
    run.taker.until(lambda _: "deleted or moved away" in run.said)
    away.rename(run.log)
    run.append(rows(1000, 1010))


@pytest.mark.parametrize("what", [rename, copytruncate, packed, rsynced, back_again])
def test_nothing_is_lost_or_repeated(run: Run, what: Callable[[Run], None]) -> None:
    what(run)
    run.until(1010)
    run.append(rows(1010, 1020))
    run.until(1020)
    assert run.steps == list(range(1020))


def test_a_log_written_anew_is_read_from_its_start(run: Run) -> None:
    run.log.write_bytes(b"other words\n" + rows(0, 10))
    run.until(1010)
    assert run.steps == [*range(1000), *range(10)]
    assert "truncated" in run.said


def test_a_writer_that_keeps_its_offset(run: Run) -> None:
    with run.log.open("r+b", buffering=0) as writer:
        writer.seek(0, os.SEEK_END)
        os.truncate(run.log, 0)
        writer.write(rows(1000, 1010))
    run.until(1010)
    assert run.steps == list(range(1010))
    assert "NUL" in run.said


def test_a_mount_that_is_taken_away_and_comes_back(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "remote" / "run").mkdir(parents=True)
    mount = tmp_path / "mount"
    with sshfs_mount(sshd, tmp_path / "remote", mount, options=("cache=no",)):
        run = Run.__new__(Run)
        run.log, run.seen = tmp_path / "remote" / "run" / "train.log", mount / "run" / "train.log"
        run.log.write_bytes(rows(0, 100))
        run.intake = Intake([str(run.seen)], clock=SystemClock())
        run.taker = Taker(run.intake)
        run.until(100)
        servers = subprocess.run(["pgrep", "-f", f"sshfs .* {mount}"], capture_output=True, text=True, check=True)
        for pid in servers.stdout.split():
            os.kill(int(pid), 9)
        run.taker.until(lambda items: items[-1].status.problem)
        assert "train.log" in run.taker.items[-1].status.problem
        run.append(rows(100, 110))
    with sshfs_mount(sshd, tmp_path / "remote", mount, options=("cache=no",)):
        run.taker.until(lambda _: len(run.steps) >= 110)
        assert run.steps == list(range(110))
        run.intake.stop()
