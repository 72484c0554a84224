"""A file system over there that stops answering: what lies on it waits and is named, all else of that host goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faultfs import FaultFs
from tests.sshd import Sshd
from tests.tails.ssh.server import ADDRESS, CLOCK, Collector, Near, options_for
from trainmon.tails.ssh import host as host_module
from trainmon.tails.ssh import places
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.ssh.follower import RemoteFollower
from trainmon.tails.ssh.hosts import Hosts
from trainmon.tails.ssh.search import Searched, search
from trainmon.tails.target import Target, TargetKind


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[FaultFs]:
    """A file system with one log."""
    (tmp_path / "behind").mkdir()
    (tmp_path / "mnt").mkdir()
    (tmp_path / "behind" / "a.log").write_bytes(b"step 1 loss 2.5\n")
    made = FaultFs(tmp_path / "behind", tmp_path / "mnt")
    yield made
    made.mend()
    made.close()


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as out:
        out.write(data)


def _problem(got: Collector) -> str:
    return got.host.problem


def test_one_that_hangs_holds_up_its_own_files_only(
    far: Sshd, connect: Callable[..., Near], mount: FaultFs, tmp_path: Path
) -> None:
    near = connect(far)
    beside = tmp_path / "b.log"
    beside.write_bytes(b"step 1 loss 2.5\n")
    there, other = near.follow(tmp_path / "mnt" / "a.log"), near.follow(beside)
    there.until(b"step 1 loss 2.5\n")
    other.until(b"step 1 loss 2.5\n")
    mount.set(hangs=True)
    content = beside.read_bytes()
    other.until_true(lambda: "has not answered" in _problem(other))
    assert _problem(other).startswith(f"{ADDRESS.name}: {tmp_path / 'mnt'} there has not answered for ")
    for number in range(3):
        _append(beside, b"step %d loss 2.4\n" % (number + 2))
        content = beside.read_bytes()
        other.until(content)  # while the other hangs, for as long as this test lasts
    assert near.host.connections == 1
    mount.mend()
    _append(tmp_path / "behind" / "a.log", b"step 2 loss 2.4\n")
    there.until(b"step 1 loss 2.5\nstep 2 loss 2.4\n", 60.0)
    other.until_true(lambda: not _problem(other))
    assert set(there.events) == {"appeared"}


def test_a_log_that_a_link_leads_to_on_one_that_hangs_holds_up_no_other(
    far: Sshd, connect: Callable[..., Near], mount: FaultFs, tmp_path: Path
) -> None:
    near = connect(far)
    beside = tmp_path / "b.log"
    beside.write_bytes(b"step 1 loss 2.5\n")
    (tmp_path / "there").symlink_to("mnt")
    (tmp_path / "a.log").symlink_to(tmp_path / "there" / "a.log")
    linked, other = near.follow(tmp_path / "a.log"), near.follow(beside)
    linked.until(b"step 1 loss 2.5\n")
    other.until(b"step 1 loss 2.5\n")
    mount.set(hangs=True)
    other.until_true(lambda: "/mnt there has not answered" in _problem(other))
    _append(beside, b"step 2 loss 2.4\n")
    other.until(b"step 1 loss 2.5\nstep 2 loss 2.4\n")
    assert near.host.connections == 1
    mount.mend()
    _append(tmp_path / "behind" / "a.log", b"step 2 loss 2.4\n")
    linked.until(b"step 1 loss 2.5\nstep 2 loss 2.4\n", 60.0)
    assert near.host.connections == 1


def test_targets_beside_one_that_hangs_are_found(
    far: Sshd, mount: FaultFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "HANGS_S", 1.0)
    (tmp_path / "runs").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a").symlink_to("../mnt")
    (tmp_path / "a.log").symlink_to(tmp_path / "links" / "a" / "a.log")
    (tmp_path / "runs" / "train.log").write_bytes(b"step 1 loss 2.5\n" * 20)
    hosts = Hosts(options_for(far), CLOCK)
    host = hosts.host(ADDRESS)

    def found(*names: str) -> Searched:
        paths = [tmp_path / name for name in names]
        targets = [Target(f"h:{path}", TargetKind.SSH, str(path), RemotePath(ADDRESS, str(path))) for path in paths]
        return search(host, targets, hosts.heads(ADDRESS))

    assert len(found("mnt", "runs").groups) == 2
    beside = Collector(RemoteFollower(RemotePath(ADDRESS, str(tmp_path / "runs" / "train.log")), host, CLOCK), host)
    beside.until(b"step 1 loss 2.5\n" * 20)
    mount.set(hangs=True)
    for silent in ("mnt", "mnt/a.log", "mnt/*.log", "m*/*.log", ".", "links", "links/*/*.log", "links/a", "a.log"):
        searched = found(silent, "runs")
        assert [Path(file.path).name for _, run in searched.groups for file in run.files] == ["train.log"], silent
        [problem] = searched.problems
        assert "/mnt there has not answered for " in problem
        assert searched.may_grow
    _append(tmp_path / "runs" / "train.log", b"step 2 loss 2.4\n")
    beside.until(b"step 1 loss 2.5\n" * 20 + b"step 2 loss 2.4\n")
    assert host.connections == 1
    mount.mend()
    assert len(found("mnt", "runs").groups) == 2
    beside.until_true(lambda: not host.problem)
    hosts.close()
    assert host_module.GIVE_UP_S > 10
