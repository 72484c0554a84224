from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails import watch
from trainmon.tails.clock import SystemClock
from trainmon.tails.fstype import Mount, mount_of, read_mounts
from trainmon.tails.watch import COLD_S, HEARTBEAT_S, HOT_S, INOTIFY, POLL, Schedule, Watcher

LOCAL = Mount("/", "ext4")


def wait_for(watcher: Watcher, path: Path) -> bool:
    """Whether `path` is woken before a heartbeat could have done it."""
    return path in watcher.wait(HEARTBEAT_S * 0.4)


def test_hot_files_are_polled_fast_and_cold_ones_slowly() -> None:
    schedule = Schedule()
    schedule.add("a", POLL, 0.0)
    schedule.add("b", INOTIFY, 0.0)
    assert sorted(schedule.take_due(0.0)) == ["a", "b"]
    assert schedule.take_due(100.0) == []
    schedule.polled("a", 100.0, changed=True)
    assert schedule.next_due() == 100.0 + HOT_S
    schedule.take_due(200.0)
    schedule.polled("a", 200.0, changed=False)
    assert schedule.next_due() == 200.0 + HEARTBEAT_S
    schedule.take_due(2000.0)
    schedule.polled("a", 2000.0, changed=False)
    assert schedule.next_due() == 2000.0 + COLD_S
    schedule.polled("b", 2000.0, changed=False)
    assert schedule.next_due() == 2000.0 + HEARTBEAT_S


def test_a_wake_makes_due_and_a_removed_path_is_forgotten() -> None:
    schedule = Schedule()
    schedule.add("a", INOTIFY, 0.0)
    schedule.take_due(0.0)
    schedule.polled("a", 0.0, changed=False)
    schedule.wake("a", 1.0)
    schedule.wake("unknown", 1.0)
    assert schedule.take_due(1.0) == ["a"]
    schedule.remove("a")
    schedule.polled("a", 1.0, changed=True)
    assert schedule.next_due() is None


def test_a_file_written_without_pause_is_not_polled_without_pause() -> None:
    schedule = Schedule()
    schedule.add("a", INOTIFY, 0.0)
    polls = 0
    for millisecond in range(1000):
        now = millisecond / 1000
        schedule.wake("a", now)
        for _ in schedule.take_due(now):
            polls += 1
            schedule.polled("a", now, changed=True)
    assert polls <= 1 / watch.LEAST_S + 2


@pytest.fixture
def watcher() -> Watcher:
    made = Watcher(SystemClock())
    yield made
    made.close()


def test_inotify_tells_of_appends_creation_and_replacement(tmp_path: Path, watcher: Watcher) -> None:
    there, later = tmp_path / "a.log", tmp_path / "later.log"
    there.write_text("one\n")
    assert watcher.add(there, LOCAL) == INOTIFY
    assert watcher.add(later, LOCAL) == INOTIFY
    for path in watcher.wait(1.0):
        watcher.polled(path, changed=False)
    with there.open("a") as file:
        file.write("two\n")
    assert wait_for(watcher, there)
    watcher.polled(there, changed=True)
    later.write_text("x")
    assert wait_for(watcher, later)
    fresh = tmp_path / "fresh"
    fresh.write_text("new\n")
    while watcher.wait(0.3):
        watcher.polled(there, changed=False)
        watcher.polled(later, changed=False)
    fresh.rename(there)
    assert wait_for(watcher, there)


def test_blind_file_systems_and_links_are_polled(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "link.log").symlink_to(tmp_path / "real" / "a.log")
    assert watcher.add(tmp_path / "a.log", Mount("/", "nfs4")) == POLL
    assert watcher.add(tmp_path / "link.log", LOCAL) == POLL
    assert watcher.add(tmp_path / "no" / "such" / "dir" / "a.log", LOCAL) == POLL


def test_polling_takes_over_at_the_limits_of_inotify(
    tmp_path: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> object:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    monkeypatch.setattr(Watcher, "_observe", refuse)
    path = tmp_path / "a.log"
    assert watcher.add(path, LOCAL) == POLL
    assert "limit" in watcher.problem
    assert watcher.wait(0.0) == [path]


def test_only_so_many_directories_are_watched(
    tmp_path: Path, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MAX_DIRECTORIES", 2)
    for name in "abc":
        (tmp_path / name).mkdir()
    assert [watcher.add(tmp_path / name / "x.log", LOCAL) for name in "abc"] == [INOTIFY, INOTIFY, POLL]
    watcher.remove(tmp_path / "a" / "x.log")
    assert watcher.add(tmp_path / "c" / "y.log", LOCAL) == INOTIFY


def test_polling_needs_no_watchdog(tmp_path: Path) -> None:
    clock = FakeClock()
    watcher = Watcher(clock, use_inotify=False)
    path = tmp_path / "a.log"
    assert watcher.add(path) == POLL
    assert watcher.wait(0.0) == [path]
    watcher.polled(path, changed=False)
    assert watcher.wait(0.0) == []
    clock.sleep(HOT_S)
    assert watcher.wait(0.0) == [path]
    watcher.close()


def test_mounts_are_told_by_the_longest_match(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "23 22 0:1 / /scratch rw shared:1 - lustre x rw\n"
        "24 22 0:2 / /home/my\\040runs rw master:2 shared:3 - fuse.sshfs h: rw\n"
        "25 22 0:3 / /over rw - ext4 /dev/vdb rw\n"
        "26 22 0:4 / /over rw - nfs4 s:/x rw\n"
        "cut short\n"
    )
    mounts = read_mounts(table)
    assert len(mounts) == 5
    cases = {
        "/scratch/a": ("lustre", True),
        "/scratchy": ("ext4", False),
        "/home/my runs/a.log": ("fuse.sshfs", True),
        "/over/x": ("nfs4", True),
        "/": ("ext4", False),
    }
    for path, expected in cases.items():
        mount = mount_of(path, mounts)
        assert (mount.fstype, mount.is_blind) == expected


def test_without_a_table_the_kernel_is_asked(tmp_path: Path) -> None:
    assert read_mounts(tmp_path / "none") == ()
    asked = mount_of(tmp_path, ())
    known = mount_of(tmp_path)
    assert asked.fstype in (known.fstype, "") or known.fstype in ("ext2", "ext3")
