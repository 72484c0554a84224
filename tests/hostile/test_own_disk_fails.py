"""A disk in trouble (EIO) under what trainmon keeps for itself: one line, the verdict, and the old state as it was.

The home is on a file system through /dev/fuse whose operations fail one at a time, each as the kernel tells it.
"""

from __future__ import annotations

import errno
import json
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faultfs_writable import WritableFaultFs, writable_fault_fs
from tests.hostile.test_process import GOOD, is_judged, run
from trainmon.monitor.logbook import Logbook
from trainmon.monitor.sinks.told import Marked, ToldBook
from trainmon.tails.clock import SystemClock
from trainmon.tails.own_files import read_private, write_private
from trainmon.tui.state import State, StateFile

# What a replacement in one piece asks for, in its order.
STEPS = ("create", "write", "fsync", "rename")
LARGE = b"".join(
    b'{"step": %d, "loss": %.3f, "grad_norm": 1.0, "note": "%s"}\n' % (n, 2.5 + n % 7 / 100, b"x" * 200)
    for n in range(20_000)
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[WritableFaultFs]:
    with writable_fault_fs(tmp_path / "behind", tmp_path / "home") as mounted:
        yield mounted


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(GOOD)
    (folder / "later.jsonl").write_bytes(GOOD)
    return folder


def kept_runs(home: WritableFaultFs, logs: Path) -> list[str]:
    return sorted(each["name"] for each in json.loads(run(logs, home.point, "history", "--json").stdout)["runs"])


def left_over(home: WritableFaultFs) -> list[Path]:
    """Halves of files, which nobody would ever take away."""
    return [path for path in home.backing.rglob("*") if path.name.endswith((".tmp", "-journal"))]


@pytest.mark.parametrize("step", ["write", "fsync", "read", "open", "lookup", "getattr", "create"])
def test_the_history(home: WritableFaultFs, logs: Path, step: str) -> None:
    is_judged(run(logs, home.point, "check", "good.jsonl"))
    before = kept_runs(home, logs)
    assert before == ["good.jsonl"]
    home.set(errors={step: errno.EIO})
    made = run(logs, home.point, "check", "later.jsonl")
    home.mend()
    is_judged(made)
    assert [line for line in made.stderr.splitlines() if "history.sqlite3" in line], made.stderr
    assert kept_runs(home, logs) == before
    base = sqlite3.connect(home.point / ".local/share/trainmon/history.sqlite3")
    assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    base.close()
    is_judged(run(logs, home.point, "check", "later.jsonl"))
    assert kept_runs(home, logs) == ["good.jsonl", "later.jsonl"], "once the disk is well, all is kept again"
    assert not left_over(home)


@pytest.mark.parametrize("step", [*STEPS, "mkdir", "read", "bad sector"])
def test_what_was_read_of_a_large_log(home: WritableFaultFs, logs: Path, step: str) -> None:
    (logs / "large.jsonl").write_bytes(LARGE)
    words = ("check", "large.jsonl", "--json", "--no-history")
    if step in ("read", "bad sector"):
        is_whole(run(logs, home.point, *words))
    if step == "bad sector":
        home.set(bad_bytes=1000)  # the index at the end of an entry can be read, its first records cannot
    else:
        home.set(errors={step: errno.EIO})
    first = is_whole(run(logs, home.point, *words))
    home.mend()
    entries = [path for path in (home.backing / ".cache").rglob("*") if path.suffix in (".parsed", ".judged")]
    assert len(entries) == (2 if step in ("read", "bad sector", "fsync") else 0)
    assert not left_over(home)
    assert is_whole(run(logs, home.point, *words)) == first


def is_whole(made: subprocess.CompletedProcess[str]) -> object:
    """The run as it was judged; all of its log was read, and nothing is said of the cache."""
    assert (made.returncode, made.stderr) == (0, ""), made
    (only,) = json.loads(made.stdout)["runs"]
    assert only["steps"]["count"] == 20_000
    return {name: only[name] for name in ("verdict", "steps", "state")} | {"checks": len(only["checks"])}


@pytest.mark.parametrize("operation", STEPS)
def test_a_state_that_is_replaced_in_one_piece(home: WritableFaultFs, operation: str) -> None:
    path = home.point / "state" / "one.json"
    write_private(path, b"old")
    home.set(errors={operation: errno.EIO})
    with pytest.raises(OSError, match="Input/output error"):
        write_private(path, b"new" * 100_000)
    home.mend()
    assert read_private(path, 100) == b"old"
    assert not left_over(home)


@pytest.mark.parametrize("step", STEPS)
def test_pins_and_acknowledgements(home: WritableFaultFs, tmp_path: Path, step: str) -> None:
    file = StateFile(tmp_path, home.point / "watch")
    assert file.write(State(acknowledged=(("run", "target", "old"),))) == ""
    home.set(errors={step: errno.EIO})
    said = file.write(State(acknowledged=(("run", "target", "new"),)))
    home.mend()
    assert said == f"{file.path}: Input/output error; pins and acknowledgements will not be remembered"
    assert file.read()[0].acknowledged == (("run", "target", "old"),)
    assert file.write(State(acknowledged=(("run", "target", "new"),))) == ""
    assert file.read()[0].acknowledged == (("run", "target", "new"),)


@pytest.mark.parametrize("step", STEPS)
def test_whom_was_told_of_what(home: WritableFaultFs, step: str) -> None:
    path, clock = home.point / "told" / "one.json", SystemClock()
    said: list[str] = []

    def mark(episode: str) -> None:
        book = ToldBook(path, said.append, clock)
        book.mark([Marked("run", "target", episode, clock.wall(), acknowledged=True)])
        book.close(30.0)

    mark("old")
    home.set(errors={step: errno.EIO})
    mark("new")
    home.mend()
    assert said == [f"{path}: Input/output error; after a restart alerts may be told twice"]
    book = ToldBook(path, said.append, clock)
    assert [episode for _, _, episode in book.marked()] == ["old"]
    book.close(30.0)
    assert not left_over(home)


@pytest.mark.parametrize("step", ["open", "read", "write"])
def test_the_log_book(home: WritableFaultFs, logs: Path, step: str) -> None:
    assert run(logs, home.point, "note", "good.jsonl", "the first").returncode == 0
    home.set(errors={step: errno.EIO})
    made = run(logs, home.point, "note", "good.jsonl", "the second")
    home.mend()
    assert made.returncode == 2
    assert len(made.stderr.splitlines()) == 1
    assert "Input/output error" in made.stderr
    assert "not kept" in made.stderr
    book = Logbook(home.point / ".local/share/trainmon/logbook")
    remarks, problems = book.read([str(logs / "good.jsonl")])
    assert [each.text for each in remarks] == ["the first"]
    assert problems == ()


def test_a_note_of_which_the_disk_took_a_part_was_not_kept(logs: Path, tmp_path: Path) -> None:
    book = Logbook(tmp_path / ".local/share/trainmon/logbook")
    assert run(logs, tmp_path, "note", "good.jsonl", "one").returncode == 0
    (file,) = book.folder.iterdir()
    most = file.stat().st_size + 7

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    made = run(logs, tmp_path, "note", "good.jsonl", "two", limits=limits)
    assert file.stat().st_size == most, "a part was written"
    assert (made.returncode, len(made.stderr.splitlines())) == (2, 1), made
    assert "not kept" in made.stderr
    assert run(logs, tmp_path, "note", "good.jsonl", "three").returncode == 0
    remarks, _ = book.read([str(logs / "good.jsonl")])
    assert [each.text for each in remarks] == ["one", "three"]


def test_a_watch_goes_on(home: WritableFaultFs, logs: Path) -> None:
    home.set(errors=dict.fromkeys(("write", "fsync", "rename", "create"), errno.EIO))
    made = run(logs, home.point, "watch", "--headless", "--until-idle", "0.5", "good.jsonl")
    assert made.returncode == 0, made
    assert json.loads(made.stdout.splitlines()[-1])["event"] == "end"
    assert "Traceback" not in made.stderr
