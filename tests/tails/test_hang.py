"""A mount that does not answer stops nothing but its own files, and those go on when it answers again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faultfs import FaultFs, fault_fs
from tests.tails.test_intake import Taker, steps
from trainmon.tails import intake as intake_module
from trainmon.tails import probe
from trainmon.tails.clock import SystemClock
from trainmon.tails.discover import discover
from trainmon.tails.fstype import Mount, mount_behind, mount_of
from trainmon.tails.intake import Intake


def rows(first: int, last: int) -> str:
    return "".join(f"step {step} loss 2.5\n" for step in range(first, last))


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[FaultFs]:
    (tmp_path / "backing").mkdir()
    with fault_fs(tmp_path / "backing", tmp_path / "tree" / "mount") as mounted:
        yield mounted


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Taker]]:
    monkeypatch.setattr(intake_module, "HANGS_AFTER_S", 0.5)
    monkeypatch.setattr(intake_module, "RESCAN_S", 0.3)
    made: list[Intake] = []

    def make(targets: list[str], cwd: Path) -> Taker:
        made.append(Intake(targets, clock=SystemClock(), cwd=cwd))
        return Taker(made[-1])

    yield make
    for intake in made:
        intake.stop()


def test_a_mount_that_hangs_while_it_is_read(tmp_path: Path, mount: FaultFs, start: Callable[..., Taker]) -> None:
    (tmp_path / "near").mkdir()
    near, far = tmp_path / "near" / "near.log", mount.backing / "far.log"
    near.write_text(rows(0, 100))
    far.write_text(rows(0, 100))
    taker = start([str(near), str(mount.point / "far.log")], tmp_path)
    taker.until(
        lambda items: {name: len(got) for name, got in steps(items).items()} == {"near.log": 100, "far.log": 100}
    )
    mount.set(hangs=True)
    with far.open("a") as file:
        file.write(rows(100, 110))
    with near.open("a") as file:
        file.write(rows(100, 110))
    taker.until(lambda items: steps(items)["near.log"] == list(range(110)))
    # A busy machine may make the other mount slow too: only of this one it is to be said.
    taker.until(lambda _: any(f"{mount.point}/far.log: " in problem for problem in taker.intake.problems))
    assert taker.intake.request_lines(mount.point / "far.log", 5) is not None  # asks, never waits
    mount.set(hangs=False)
    items = taker.until(lambda items: len(steps(items)["far.log"]) >= 110)
    assert steps(items)["far.log"] == list(range(110))
    taker.until(lambda _: not any(str(mount.point) in problem for problem in taker.intake.problems))


def test_a_mount_that_hangs_from_the_start(
    tmp_path: Path, mount: FaultFs, start: Callable[..., Taker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named itself, behind a link, and below a directory that is searched."""
    tree = tmp_path / "tree"
    monkeypatch.setattr(probe, "PATIENCE_S", 0.2)
    (tree / "near").mkdir()
    (tree / "near" / "train.log").write_text(rows(0, 100))
    (mount.backing / "run").mkdir()
    (mount.backing / "run" / "train.log").write_text(rows(0, 50))
    (tree / "link").symlink_to(mount.point / "run")
    mount.set(hangs=True)
    for targets in (
        [str(mount.point / "run"), "near"],
        ["link", "near"],
        [str(tree)],
        [f"{mount.point}/*", "near"],
    ):
        found = discover(targets, tree)
        assert [Path(file.path).name for run in found.runs for file in run.files] == ["train.log"], targets
        assert any("answer" in problem for problem in found.problems), targets
    taker = start([str(mount.point / "run"), "near"], tree)
    taker.until(lambda items: steps(items).get("train.log") == list(range(100)))
    taker.until(lambda _: any(str(mount.point) in problem for problem in taker.intake.problems))
    assert sum("probe" in thread.name for thread in threading.enumerate()) <= 1  # asked once, however often looked at
    mount.set(hangs=False)
    taker.until(lambda items: len(steps(items)["train.log"]) == 150)
    taker.until(lambda _: not any(str(mount.point) in problem for problem in taker.intake.problems))


def test_links_are_followed_up_to_what_may_hang(tmp_path: Path) -> None:
    near, far = Mount("/", "ext4"), Mount(str(tmp_path / "far"), "nfs4")
    (tmp_path / "to_far").symlink_to("far/run")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "chain").symlink_to("../to_far")
    (tmp_path / "circle").symlink_to("circle")
    for name, expected in {
        "far/a.log": far,
        "to_far/a.log": far,
        "dir/chain/x/a.log": far,
        "dir/../far/a.log": far,
        "dir/a.log": near,
        "nothing/a.log": near,
        "circle/a.log": near,
        "farther/a.log": near,
    }.items():
        assert mount_behind(tmp_path / name, (near, far)) == expected, name
    deeper = Mount(f"{far.point}/local", "xfs")
    assert mount_behind(f"{far.point}/local/a.log", (near, far, deeper)) == deeper
    assert mount_of(tmp_path / "to_far" / "a.log", (near, far)) == near
