"""The test bed itself: the loopback sshd answers, and an sshfs mount shows what is written behind it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.sshd import Sshd, sshfs_mount


def test_a_command_runs_over_the_loopback_sshd(sshd: Sshd) -> None:
    done = subprocess.run(sshd.ssh_command("echo", "there"), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "there\n"


def test_a_server_that_was_stopped_answers_no_more(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "own")
    server.start()
    server.stop()
    assert subprocess.run(server.ssh_command("true"), capture_output=True, timeout=60, check=False).returncode == 255


def test_an_sshfs_mount_shows_what_is_written_behind_it(sshd: Sshd, tmp_path: Path) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    (remote / "a.log").write_text("one\n")
    with sshfs_mount(sshd, remote, tmp_path / "mount") as mount:
        assert (mount / "a.log").read_text() == "one\n"
    with pytest.raises(FileNotFoundError):
        (tmp_path / "mount" / "a.log").read_text()
