"""The commands on another host, as a user types them: questions in the terminal, options, one line a problem."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.sshd import Sshd, program


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="tm-") as place:
        yield {**os.environ, "XDG_RUNTIME_DIR": place, "SSH_AUTH_SOCK": ""}
        for socket in (Path(place) / "trainmon").glob("*"):
            subprocess.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "x"], capture_output=True)


def trainmon(*words: str) -> list[str]:
    return [sys.executable, "-m", "trainmon", *words]


def write_log(path: Path) -> None:
    path.write_text("".join(f"step: {i} | loss: {3 - i / 1000:.4f} | lr: 0.0001\n" for i in range(1, 200)))


def test_every_command_reads_there(sshd: Sshd, tmp_path: Path, environment: dict[str, str]) -> None:
    write_log(tmp_path / "a.log")
    write_log(tmp_path / "b.log")
    there = [f"{Sshd.HOST}:{tmp_path}/{name}.log" for name in "ab"]
    config = ["-F", str(sshd.config)]
    for words, expected in (
        (["check", *config, there[0], "-q"], "a.log  [PASS]"),
        (["export", *config, there[0], "-s", "loss.train"], "\na.log,0,199,2.801\n"),
        (["compare", *config, there[0], str(tmp_path / "b.log")], "b.log"),
        (["watch", "--headless", "--until-idle", "0.5", *config, there[0]], '"event": "end", "exit": 0'),
    ):
        done = subprocess.run(trainmon(*words), env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (words, done.stderr)
        assert expected in done.stdout, words
        assert done.stderr == "", words


def test_a_problem_is_one_line(sshd: Sshd, tmp_path: Path, environment: dict[str, str]) -> None:
    for target, word in (
        (f"{Sshd.HOST}:{tmp_path}/none.log", "not there"),
        ("ssh://-oProxyCommand=x/y", "write ssh://USER@HOST:PORT/PATH"),
    ):
        words = trainmon("check", "-F", str(sshd.config), target)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert word in done.stderr


def test_what_must_be_asked_is_asked_first(sshd: Sshd, tmp_path: Path, environment: dict[str, str]) -> None:
    """A key with a passphrase and an unknown host key: both are asked in the terminal, once, and kept for the next."""
    key = tmp_path / "locked"
    keygen = [program("ssh-keygen", "openssh-client"), "-q", "-t", "ed25519", "-N", "open sesame", "-f", str(key)]
    subprocess.run(keygen, check=True)
    with sshd.authorized_keys.open("a") as keys:
        keys.write(key.with_suffix(".pub").read_text())
    config = tmp_path / "config"
    config.write_text(
        f"Host far\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  GlobalKnownHostsFile /dev/null\n"
    )
    write_log(tmp_path / "a.log")
    words = trainmon("check", "-q", "-F", str(config), f"far:{tmp_path}/a.log")
    child = pexpect.spawn(words[0], words[1:], env=environment, encoding="utf-8", timeout=60, dimensions=(40, 200))
    child.expect("continue connecting")
    child.sendline("yes")
    child.expect("passphrase")
    child.sendline("open sesame")
    child.expect(r"a\.log  \[PASS\]")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    again = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
    )
    assert again.returncode == 0, again.stderr
