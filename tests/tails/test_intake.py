from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tails.formats_for_tests import detect
from trainmon.tails import intake as intake_module
from trainmon.tails.clock import SystemClock
from trainmon.tails.discover import discover
from trainmon.tails.formats.base import Format
from trainmon.tails.fstype import mount_of
from trainmon.tails.intake import Intake, IntakeItem, read_all
from trainmon.tails.stdin_source import StdinTail

CLOCK = SystemClock()


def steps(items: list[IntakeItem]) -> dict[str, list[float]]:
    """Step numbers by file name, in the order they came."""
    out: dict[str, list[float]] = {}
    for item in items:
        name = Path(item.path).name
        out.setdefault(name, [])
        out[name] += [step for block in item.update.parsed.blocks for step in block.steps.tolist()]
    return out


def rows(first: int, last: int) -> str:
    return "".join(f"{step} 2.5\n" for step in range(first, last))


class Taker:
    """Takes items until something is so, or a generous time has passed."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake
        self.items: list[IntakeItem] = []

    def until(self, is_so: Callable[[list[IntakeItem]], object], limit_s: float = 90.0) -> list[IntakeItem]:
        end = CLOCK.monotonic() + limit_s
        while not is_so(self.items):
            if CLOCK.monotonic() > end:
                raise AssertionError(f"did not come; had {self.items[-5:]}; {self.intake.problems}")
            self.items += self.intake.get(0.1)
        return self.items


@pytest.fixture
def start() -> Iterator[Callable[..., Taker]]:
    made: list[Intake] = []

    def make(*args: object, **options: object) -> Taker:
        made.append(Intake(*args, clock=CLOCK, detect=detect, **options))  # type: ignore[arg-type]
        return Taker(made[-1])

    yield make
    for intake in made:
        intake.stop()


@pytest.mark.parametrize("use_inotify", [True, False])
def test_files_are_read_and_followed(tmp_path: Path, start: Callable[..., Taker], use_inotify: bool) -> None:
    path = tmp_path / "train.log"
    path.write_text(rows(0, 1000))
    taker = start(discover([str(path)], tmp_path), use_inotify=use_inotify)
    taker.until(lambda items: steps(items).get("train.log") == list(range(1000)))
    with path.open("a") as file:
        file.write(rows(1000, 1010))
    items = taker.until(lambda items: steps(items).get("train.log") == list(range(1010)))
    assert {item.run_name for item in items} == {"train.log"} or len({item.run_name for item in items}) == 1
    assert items[-1].status.watched_by in (("inotify", "poll") if use_inotify else ("poll",))


def test_a_run_that_appears_later_is_found(
    tmp_path: Path, start: Callable[..., Taker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "RESCAN_S", 0.1)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.log").write_text(rows(0, 3))
    taker = start(["."], cwd=tmp_path)
    taker.until(lambda items: "train.log" in steps(items))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "train.log").write_text(rows(5, 6))
    (tmp_path / "a" / "metrics.jsonl").write_text(rows(7, 8))
    items = taker.until(lambda items: len({item.path for item in items if item.update.parsed.records}) == 3)
    names = {item.run_name: set() for item in items}
    for item in items:
        names[item.run_name].add(str(Path(item.path).relative_to(tmp_path)))
    assert names == {"a": {"a/train.log", "a/metrics.jsonl"}, "b": {"b/train.log"}}
    assert [run.name for run in taker.intake.runs] == ["a", "b"]


def test_a_file_that_is_not_there_yet_is_told_of_and_then_read(tmp_path: Path, start: Callable[..., Taker]) -> None:
    path = tmp_path / "later.log"
    taker = start(discover([str(path)], tmp_path))
    taker.until(lambda items: items and "not there yet" in items[0].status.problem)
    path.write_text(rows(0, 2))
    items = taker.until(lambda items: steps(items).get("later.log") == [0, 1])
    assert items[-1].status.problem == ""


def test_settings_above_hold_for_every_run_below(
    tmp_path: Path, start: Callable[..., Taker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for one that is found later, and when they change."""
    monkeypatch.setattr(intake_module, "RESCAN_S", 0.1)
    tmp_path.chmod(0o755)
    settings = tmp_path / "trainmon.toml"
    settings.write_text("first")
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.log").write_text(rows(0, 3))
    taker = start(["."], cwd=tmp_path)

    def told(content: bytes) -> set[str]:
        return {item.run_name for item in taker.items if item.config == content}

    taker.until(lambda _: told(b"first") == {"a", "b"})
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "train.log").write_text(rows(0, 3))
    taker.until(lambda _: told(b"first") == {"a", "b", "c"})
    settings.write_text("second, of another length")
    taker.until(lambda _: told(b"second, of another length") == {"a", "b", "c"})
    for name in "ab":  # before the first record
        roles = [item.role for item in taker.items if item.run_name == name]
        assert roles[0] == "config"
    assert all(settings in {file.path for file in run.files} for run in taker.intake.runs)


def test_the_next_checkpoint_goes_on_where_the_last_ended(
    tmp_path: Path, start: Callable[..., Taker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "RESCAN_S", 0.1)
    first, second = (tmp_path / f"out/checkpoint-{number}/trainer_state.json" for number in (1, 2))
    first.parent.mkdir(parents=True)
    first.write_text("[[1, 2.5]]\n")
    taker = start(["out"], cwd=tmp_path)
    taker.until(lambda items: steps(items).get("trainer_state.json") == [1])
    second.parent.mkdir()
    second.write_text("[[1, 2.5], [2, 2.4]]\n")
    os.utime(first, (1, 1))
    items = taker.until(lambda items: steps(items).get("trainer_state.json") == [1, 2])
    assert {item.run_name for item in items} == {"out"}
    [run] = taker.intake.runs
    assert [file.path for file in run.files] == [second]


def test_reading_once_comes_to_an_end(tmp_path: Path, start: Callable[..., Taker]) -> None:
    for name in "abc":
        (tmp_path / f"{name}.log").write_text(rows(0, 20_000) + "99999 1.0")
    found = discover(["a.log", "b.log", "c.log"], tmp_path)
    taker = start(found, follow=False)
    taker.until(lambda _: taker.intake.is_done)
    expected = [*range(20_000), 99999]
    assert steps(taker.items) == {f"{name}.log": expected for name in "abc"}
    assert sum(item.is_ended for item in taker.items) == 3


def test_read_all_gives_settings_first_and_the_torn_last_line(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(rows(0, 5) + "5 2.5")
    (tmp_path / "trainmon.toml").write_text("window = 50")
    [run] = discover(["train.log"], tmp_path).runs
    items = list(read_all(run, CLOCK, detect=detect))
    assert [(item.role, item.is_ended) for item in items] == [("config", True), ("stdout", True)]
    assert items[0].config == b"window = 50"
    assert steps(items[1:]) == {"train.log": [0, 1, 2, 3, 4, 5]}
    assert items[1].status.lines == 6


def test_read_all_says_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for target in ("fifo", "none.log"):
        [run] = discover([target], tmp_path).runs
        [item] = read_all(run, CLOCK, detect=detect)
        assert target in item.status.problem
        assert item.is_ended


def test_lines_are_read_by_the_reader(tmp_path: Path, start: Callable[..., Taker]) -> None:
    path = tmp_path / "train.log"
    path.write_text(rows(0, 1000))
    taker = start(discover([str(path)], tmp_path))
    taker.until(lambda items: steps(items).get("train.log") == list(range(1000)))
    lines = taker.intake.request_lines(path, 500, 1).result(timeout=60)
    assert [(line.line_no, line.text) for line in lines] == [(499, "498 2.5"), (500, "499 2.5"), (501, "500 2.5")]
    assert taker.intake.request_lines("unknown", 1).result(timeout=60) == []


def test_a_format_that_fails_stops_its_own_file_only(tmp_path: Path) -> None:
    def breaks(head: bytes, source: str) -> Format | None:
        if source.endswith("bad.log"):
            raise RuntimeError("a bug")
        return detect(head, source)

    for name in ("bad.log", "good.log"):
        (tmp_path / name).write_text(rows(0, 3))
    intake = Intake(discover(["bad.log", "good.log"], tmp_path), clock=CLOCK, detect=breaks)
    items = Taker(intake).until(lambda items: {"bad.log", "good.log"} <= set(steps(items)))
    by_name = {Path(item.path).name: item for item in items}
    assert "report" in by_name["bad.log"].status.problem
    assert steps(items)["good.log"] == [0, 1, 2]
    intake.stop()


def test_a_mount_that_hangs_blocks_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_mount = Path("/dev/shm")
    if not os.access(other_mount, os.W_OK) or mount_of(other_mount).point == mount_of(tmp_path).point:
        pytest.skip("no second file system to write to")
    monkeypatch.setattr(intake_module, "HANGS_AFTER_S", 0.05)
    released = threading.Event()

    def hangs(head: bytes, source: str) -> Format | None:
        if source.startswith(str(other_mount)):
            released.wait(60)
        return detect(head, source)

    with tempfile.TemporaryDirectory(dir=other_mount) as directory:
        stuck, good = Path(directory) / "stuck.log", tmp_path / "good.log"
        stuck.write_text(rows(0, 3))
        good.write_text(rows(0, 3))
        intake = Intake(discover([str(stuck), str(good)], tmp_path), clock=CLOCK, detect=hangs)
        taker = Taker(intake)
        taker.until(lambda items: steps(items).get("good.log") == [0, 1, 2])
        taker.until(lambda _: any("stuck.log" in line and "not answered" in line for line in intake.problems))
        released.set()
        taker.until(lambda items: steps(items).get("stuck.log") == [0, 1, 2])
        taker.until(lambda _: intake.problems == ())
        intake.stop()


def test_a_full_queue_holds_the_readers_back_and_loses_nothing(
    tmp_path: Path, start: Callable[..., Taker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake_module, "QUEUE_ITEMS", 2)
    count = 300_000
    for name in "ab":
        (tmp_path / f"{name}.log").write_text(rows(0, count))
    taker = start(discover(["a.log", "b.log"], tmp_path))
    taker.until(lambda items: steps(items).get("a.log", [0])[-1] == count - 1, 300.0)
    taker.until(lambda items: steps(items).get("b.log", [0])[-1] == count - 1, 300.0)
    assert steps(taker.items) == {"a.log": list(range(count)), "b.log": list(range(count))}


def test_problems_of_discovery_are_passed_on(tmp_path: Path, start: Callable[..., Taker]) -> None:
    taker = start(["*.nothing", "ssh://-x/y"], cwd=tmp_path)
    taker.until(lambda _: len(taker.intake.problems) == 2)


def test_stdin_is_read_as_it_comes_and_to_its_end(tmp_path: Path, start: Callable[..., Taker]) -> None:
    read_end, write_end = os.pipe()
    taker = start(["-"], cwd=tmp_path, stdin_fd=read_end)
    os.write(write_end, b"1 2.5\n2 2.4\n3 2")
    taker.until(lambda items: steps(items).get("-") == [1, 2])
    os.write(write_end, b".3\n4 2.2")
    os.close(write_end)
    items = taker.until(lambda items: items[-1].is_ended)
    assert steps(items)["-"] == [1, 2, 3, 4]
    assert items[-1].status.watched_by == "stdin"
    os.close(read_end)


def test_a_document_on_stdin(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    document = "[" + ",\n".join(f"[{step}, 2.5]" for step in range(20_000)) + "]"
    writer = threading.Thread(target=lambda: (os.write(write_end, document.encode()), os.close(write_end)))
    writer.start()
    [run] = discover(["-"], tmp_path).runs
    items = list(read_all(run, CLOCK, detect=detect, stdin_fd=read_end))
    writer.join()
    os.close(read_end)
    assert steps(items)["-"] == list(range(20_000))


def test_a_terminal_or_nothing_on_stdin_is_said() -> None:
    leader, terminal = os.openpty()
    tail = StdinTail(terminal, clock=CLOCK, detect=detect)
    assert tail.poll().is_empty
    assert "pipe a log into it" in tail.status().problem
    read_end, write_end = os.pipe()
    os.close(write_end)
    tail = StdinTail(read_end, clock=CLOCK, detect=detect)
    tail.poll()
    assert "without a byte" in tail.status().problem
    for fd in (leader, terminal, read_end):
        os.close(fd)


_TAKES_STDIN = """
import os, sys
sys.path[:0] = {path!r}
from trainmon.tails.stdin_source import take_stdin
fd = take_stdin()
print(os.read(fd, 100).decode(), repr(os.read(0, 100)) if not os.isatty(0) else "a terminal")
"""


def test_stdin_is_taken_away_from_the_keys() -> None:
    command = [sys.executable, "-c", _TAKES_STDIN.format(path=sys.path)]
    done = subprocess.run(
        command, input="1 2.5", capture_output=True, text=True, timeout=90, check=True, start_new_session=True
    )
    assert done.stdout.split() == ["1", "2.5", "b''"]


def test_stdin_gives_way_to_the_terminal() -> None:
    pexpect = pytest.importorskip("pexpect")
    script = _TAKES_STDIN.format(path=sys.path)
    child = pexpect.spawn("/bin/sh", ["-c", 'echo "1 2.5" | "$0" -c "$1"', sys.executable, script], encoding="utf-8")
    child.expect("a terminal", timeout=90)
    child.wait()


def test_read_all_goes_on_after_a_format_that_fails(tmp_path: Path) -> None:
    def breaks(head: bytes, source: str) -> Format | None:
        if source.endswith("rank0.log"):
            raise RuntimeError("a bug")
        return detect(head, source)

    for name in ("rank0.log", "rank1.log"):
        (tmp_path / name).write_text("step 1 loss 2\n" + rows(0, 3))
    [run] = discover([], tmp_path).runs
    items = list(read_all(run, CLOCK, detect=breaks))
    assert "report" in items[0].status.problem
    assert steps(items)["rank1.log"] == [0, 1, 2]


def test_files_are_closed_when_reading_ends(tmp_path: Path, start: Callable[..., Taker]) -> None:
    path = tmp_path / "train.log"
    path.write_text(rows(0, 3))

    def is_held() -> bool:
        return any(os.path.realpath(fd) == str(path) for fd in Path("/proc/self/fd").iterdir())

    taker = start(discover([str(path)], tmp_path))
    taker.until(lambda items: "train.log" in steps(items))
    assert is_held()
    taker.intake.stop()
    end = CLOCK.monotonic() + 30.0
    while is_held() and CLOCK.monotonic() < end:
        time.sleep(0.01)
    assert not is_held()
