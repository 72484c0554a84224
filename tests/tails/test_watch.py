from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails.clock import SystemClock
from trainmon.tails.fstype import Mount, mount_of, read_mounts
from trainmon.tails.schedule import (
    COLD_S,
    FROZEN_S,
    HEARTBEAT_S,
    HOT_S,
    INOTIFY,
    IS_FROZEN_AFTER_S,
    LEAST_S,
    LONGEST_S,
    MAX_SHARE,
    MOST_LOOKS,
    POLL,
    Schedule,
)
from trainmon.tails.watch import LISTEN_S, RETRY_S, Watcher

LOCAL = Mount("/", "ext4")


def wait_for(watcher: Watcher, path: Path) -> bool:
    """Whether `path` is woken before a heartbeat could have done it."""
    return path in watcher.wait(HEARTBEAT_S * 0.4)


def interval_s(schedule: Schedule, path: str, now: float, *, changed: bool, age_s: float | None = None) -> float:
    """How long after a look at `now` the next one comes."""
    schedule.polled(path, now, changed=changed, age_s=age_s)
    due = schedule.next_due()
    assert due is not None
    schedule.take_due(due)
    return due - now


def about(seconds: float) -> object:
    """Looks of one pace are put together, up to a quarter early."""
    return pytest.approx(seconds * 0.875, rel=0.126 / 0.875)


def test_hot_files_are_polled_fast_and_cold_ones_slowly() -> None:
    schedule = Schedule()
    schedule.add("a", POLL, 0.0)
    schedule.add("b", INOTIFY, 0.0)
    assert sorted(schedule.take_due(0.0)) == ["a", "b"]
    assert schedule.take_due(100.0) == []
    assert interval_s(schedule, "a", 100.0, changed=True) == about(HOT_S)
    assert interval_s(schedule, "a", 200.0, changed=False) == about(HEARTBEAT_S)
    assert interval_s(schedule, "a", 2000.0, changed=False) == about(COLD_S)
    assert interval_s(schedule, "a", 100.0 + IS_FROZEN_AFTER_S, changed=False) == about(FROZEN_S)
    assert interval_s(schedule, "b", 10.0, changed=False) == about(HEARTBEAT_S)


def test_the_pace_of_polling_is_the_runs_own() -> None:
    for gap_s, expected in ((0.5, HOT_S), (4.0, 1.0), (60.0, HEARTBEAT_S)):
        schedule = Schedule()
        schedule.add("a", POLL, 0.0)
        schedule.take_due(0.0)
        for number in range(20):
            found = interval_s(schedule, "a", number * gap_s, changed=True)
        assert found == about(expected), gap_s


def test_an_old_log_is_cold_from_the_first_look_on() -> None:
    schedule = Schedule()
    schedule.add("a", POLL, 0.0)
    schedule.take_due(0.0)
    assert interval_s(schedule, "a", 0.0, changed=True, age_s=3600.0) == about(COLD_S)
    assert interval_s(schedule, "a", 5.0, changed=True, age_s=3600.0) == about(HOT_S)


def test_a_slow_file_server_is_asked_less_often() -> None:
    """300 files that are written to, 20 ms for each look: looks stay below the share, and each file gets its turn."""
    schedule = Schedule()
    for number in range(300):
        schedule.add(f"{number}", POLL, 0.0)
    now, looks, spent_s, latest = 0.0, 0, 0.0, dict.fromkeys(map(str, range(300)), 0.0)
    longest_s = 0.0
    while now < 120.0:
        for path in schedule.take_due(now):
            now += 0.02
            schedule.polled(path, now, changed=looks % 2 == 0, cost_s=0.02)
            if now > 60.0:
                looks, spent_s = looks + 1, spent_s + 0.02
                longest_s = max(longest_s, now - latest[path])
            else:
                looks += 1
            latest[path] = now
        now = max(now, schedule.next_due() or now)
    assert spent_s / 60.0 <= max(MAX_SHARE, 300 * 0.02 / LONGEST_S) * 1.4
    assert longest_s <= LONGEST_S * 1.7


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
    assert polls <= 1 / LEAST_S + 2


def test_many_busy_files_are_looked_at_less_often_each() -> None:
    """200 files, 10 lines a second each: a look finds several lines."""
    schedule = Schedule()
    paths = [f"{number}" for number in range(200)]
    for path in paths:
        schedule.add(path, INOTIFY, 0.0)
    looks = 0
    for tick in range(1000):  # 10 s
        now = tick / 100
        for path in paths[tick % 10 :: 10]:
            schedule.wake(path, now)
        for path in schedule.take_due(now):
            looks += now > 5.0
            schedule.polled(path, now, changed=True)
    assert looks / 5.0 <= MOST_LOOKS * 1.1
    assert looks / 5.0 >= MOST_LOOKS / 2


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


def test_one_descriptor_serves_all_directories_and_no_thread(tmp_path: Path, watcher: Watcher) -> None:
    fds, threads = len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208
    paths = [tmp_path / f"{number}" / "a.log" for number in range(300)]
    for path in paths:
        path.parent.mkdir()
        assert watcher.add(path, LOCAL) == INOTIFY
    assert len(os.listdir("/proc/self/fd")) == fds + 1  # noqa: PTH208
    assert threading.active_count() == threads
    for path in watcher.wait(1.0):
        watcher.polled(path, changed=False)
    paths[217].write_text("x")
    assert wait_for(watcher, paths[217])


def test_a_directory_that_is_made_later_or_anew_is_watched(tmp_path: Path, watcher: Watcher) -> None:
    path = tmp_path / "later" / "a.log"
    assert watcher.add(path, LOCAL) == POLL
    for _ in range(2):
        path.parent.mkdir()
        path.write_text("x")
        assert path in watcher.wait(5.0)
        watcher.polled(path, changed=True)
        assert watcher.watched_by(path) == INOTIFY
        assert path in watcher.wait(5.0)  # once more, for what came before the watch
        watcher.polled(path, changed=False)
        shutil.rmtree(path.parent)
        assert path in watcher.wait(5.0)
        assert watcher.watched_by(path) == POLL
        watcher.polled(path, changed=False)


def test_one_directory_by_two_paths(tmp_path: Path, watcher: Watcher) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "other").symlink_to("real")
    paths = [tmp_path / "real" / "a.log", tmp_path / "other" / "a.log"]
    for path in paths:
        watcher.add(path, LOCAL)
    for path in watcher.wait(1.0):
        watcher.polled(path, changed=False)
    paths[0].write_text("x")
    assert sorted(watcher.wait(1.0)) == sorted(paths)
    watcher.remove(paths[0])
    watcher.polled(paths[1], changed=False)
    paths[1].write_text("xy")
    assert wait_for(watcher, paths[1])


def test_names_that_are_no_text_are_told(tmp_path: Path, watcher: Watcher) -> None:
    for raw in (b"sp ace", b"new\nline", b"\xff\xfe", b"-dash"):
        path = tmp_path / os.fsdecode(raw)
        watcher.add(path, LOCAL)
        for due in watcher.wait(0.0):
            watcher.polled(due, changed=False)
        path.write_text("x")
        assert wait_for(watcher, path)
        watcher.polled(path, changed=True)


def test_an_interruption_ends_the_wait(watcher: Watcher) -> None:
    for _ in range(100_000):
        watcher.interrupt()  # never blocks, however often
    while watcher.wait(0.0):
        pass
    thread = threading.Timer(0.05, watcher.interrupt)
    thread.start()
    assert watcher.wait(600.0) == []
    thread.join()
    watcher.close()
    watcher.interrupt()


_AT_A_LIMIT = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from trainmon.tails.clock import SystemClock
from trainmon.tails.fstype import Mount
from trainmon.tails.watch import Watcher
Path("/proc/sys/user/max_inotify_{limit}").write_text("{count}")
watcher = Watcher(SystemClock())
root = Path({root!r})
ways = [watcher.add(root / name / "x.log", Mount("/", "ext4")) for name in "abcd"]
print(*ways, watcher.problem)
due = watcher.wait(0.0)
assert len(due) == 4
"""


@pytest.mark.parametrize(
    ("limit", "count", "ways", "words"),
    [
        ("watches", 2, "inotify inotify poll poll", "fs.inotify.max_user_watches"),
        ("instances", 0, "poll poll poll poll", "fs.inotify.max_user_instances"),
    ],
)
def test_polling_takes_over_at_the_limits_of_inotify(
    tmp_path: Path, limit: str, count: int, ways: str, words: str
) -> None:
    """The kernel's own limits, set in a user namespace."""
    for name in "abcd":
        (tmp_path / name).mkdir()
    code = _AT_A_LIMIT.format(path=sys.path, limit=limit, count=count, root=str(tmp_path))
    command = ["unshare", "-Ur", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "unshare" in done.stderr or "Permission denied" in done.stderr or "Read-only" in done.stderr:
        pytest.skip(f"no user namespaces here: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(ways)
    assert words in done.stdout
    assert done.stdout.count("\n") == 1


def test_at_the_limit_of_open_files_polling_takes_over_and_inotify_is_tried_again(tmp_path: Path) -> None:
    clock = FakeClock()
    watcher = Watcher(clock)
    path = tmp_path / "a.log"
    path.write_text("x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        assert watcher.add(path, LOCAL) == POLL
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in watcher.problem
    watcher.polled(path, changed=True)
    assert watcher.watched_by(path) == POLL
    clock.sleep(RETRY_S)
    watcher.polled(path, changed=True)
    assert watcher.watched_by(path) == INOTIFY
    assert watcher.problem == ""
    watcher.close()


def test_without_inotify_all_is_polled(tmp_path: Path) -> None:
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


def test_a_file_that_is_read_seldom_is_known_to_be_written_to_at_once(tmp_path: Path) -> None:
    """Nobody is woken by it, and the age of its newest byte is right."""
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n")
    clock = SystemClock()
    watcher = Watcher(clock)
    try:
        if watcher.add(path, LOCAL) != INOTIFY:
            pytest.skip("no inotify here")
        assert watcher.wait(0.0) == [path]
        watcher.polled(path, changed=True, age_s=3600.0)
        assert clock.monotonic() - watcher.written_at[str(path)] >= 3600.0
        watcher.attend(frozenset(), 3600.0)
        with path.open("ab") as file:
            file.write(b"2\n")
        wrote_s = clock.monotonic()
        assert watcher.wait(LISTEN_S * 1.5) == []
        assert watcher.written_at[str(path)] >= wrote_s
    finally:
        watcher.close()


def test_nobody_is_woken_while_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of runs that stand still costs no wake-up a second; where much is written, one a second and no more."""
    monkeypatch.setattr("trainmon.tails.watch.LISTEN_S", 0.1)
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n")
    watcher = Watcher(SystemClock())
    try:
        if watcher.add(path, LOCAL) != INOTIFY:
            pytest.skip("no inotify here")
        assert watcher.wait(0.0) == [path]
        watcher.polled(path, changed=True, age_s=3600.0)
        watcher.attend(frozenset(), 3600.0)
        slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        assert watcher.wait(1.0) == []
        assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - slept <= 3
        with path.open("ab", buffering=0) as file:
            writer = threading.Thread(target=lambda: [(file.write(b"2\n"), time.sleep(0.005)) for _ in range(150)])
            writer.start()
            slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
            assert watcher.wait(1.0) == []
            slept = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - slept
            writer.join()
        assert slept <= 40
    finally:
        watcher.close()
