"""Files and directories over there that may not be read: said as that, and not as if they were not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sshd import Sshd, program
from tests.tails.ssh.server import Near, bare_path, options_for, server
from trainmon.tails.discover import discover
from trainmon.tails.ssh import hosts
from trainmon.tails.ssh.options import SshOptions

LOG = "step: 1 | loss: 2.5 | lr: 0.1\n" * 20


@pytest.fixture(scope="module", params=["python", "shell"])
def modest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A host on which we are nobody: root may read everything."""
    home = tmp_path_factory.mktemp("modest")
    words = "exec"
    if os.geteuid() == 0:
        words = f"exec {program('setpriv', 'util-linux')} --reuid=65534 --regid=65534 --clear-groups"
    script = home / "shell"
    script.write_text(f'#!/bin/sh\n{words} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    for place in (home, *list(home.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    path = bare_path(home) if request.param == "shell" else ""
    with server(home / "s", f"ForceCommand {script}", path=path) as made:
        yield made


@pytest.fixture
def shut(modest: Sshd, tmp_path: Path) -> Iterator[Path]:
    """A directory with a log that is closed, one that is open, and a closed directory."""
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        place.chmod(place.stat().st_mode | 0o055)
    (tmp_path / "shut").mkdir()
    for name in ("open.log", "closed.log", "shut/train.log"):
        (tmp_path / name).write_text(LOG)
    (tmp_path / "closed.log").chmod(0)
    (tmp_path / "shut").chmod(0)
    hosts.configure(options_for(modest))
    yield tmp_path
    hosts.configure(SshOptions())
    (tmp_path / "shut").chmod(0o755)


def test_files_that_may_not_be_read(modest: Sshd, shut: Path) -> None:
    near = Near(options_for(modest))
    try:
        readable = near.follow(shut / "open.log")
        for name in ("closed.log", "shut/train.log", "shut/none.log"):
            got = near.follow(shut / name)
            got.until_true(lambda got=got: got.follower.problem != "")  # type: ignore[misc]
            assert "permission denied; ask its owner" in got.follower.problem, name
        gone = near.follow(shut / "none.log")
        gone.until_true(lambda: gone.follower.problem != "")
        assert "not there yet" in gone.follower.problem
        readable.until(LOG.encode())
        late = near.follow(shut / "closed.log")
        (shut / "closed.log").chmod(0o644)
        late.until(LOG.encode())
        assert late.follower.problem == ""
        within = near.follow(shut / "shut" / "train.log")
        (shut / "shut").chmod(0o755)
        within.until(LOG.encode())
    finally:
        near.close()


@pytest.mark.parametrize("target", ["shut/*.log", "s*/*.log", "shut/", "shut", "shut/sub/"])
def test_targets_in_a_directory_that_may_not_be_read(shut: Path, target: str) -> None:
    found = discover([f"{Sshd.HOST}:{shut}/{target}", f"{Sshd.HOST}:{shut}/open.log"], shut)
    assert [Path(str(run.files[0].path)).name for run in found.runs] == ["open.log"]
    assert len(found.problems) >= 1
    assert "permission denied" in found.problems[0].lower() or "cannot be read" in found.problems[0]
    assert str(shut / "shut") in found.problems[0]


def test_what_matches_nothing_is_said_so(shut: Path) -> None:
    for target in ("*.txt", "n*/*.log", "none/"):
        [problem] = discover([f"{Sshd.HOST}:{shut}/{target}"], shut).problems
        assert "nothing matches there" in problem or "no such directory there" in problem


@pytest.mark.parametrize("target", ["", "*"])
def test_a_file_that_may_be_a_log_and_may_not_be_read_is_named(shut: Path, target: str) -> None:
    (shut / "closed.jsonl").write_text('{"step": 1, "loss": 2.5}\n' * 20)
    (shut / "closed.jsonl").chmod(0)
    found = discover([f"{Sshd.HOST}:{shut}/{target}"], shut)
    [problem] = [each for each in found.problems if "closed.jsonl" in each]
    assert "permission denied; ask its owner" in problem
    assert problem.startswith(f"{Sshd.HOST}: ")
