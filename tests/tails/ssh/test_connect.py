"""Ways to a host, and ways in which there is none: each is told in one line, and the others go on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sshd import Sshd, program
from tests.tails.ssh.server import ADDRESS, CLOCK, Near, server
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.options import SshOptions

Connect = Callable[..., Near]


def content_through(near: Near, path: Path) -> None:
    path.write_bytes(b"step: 1 loss: 2.5\n")
    got = near.follow(path)
    got.until(b"step: 1 loss: 2.5\n")


def problem_of(near: Near) -> str:
    got = near.follow("/no/where")
    got.until_true(lambda: near.host.problem != "")
    return near.host.problem


def with_command(sshd_home: Path, script: str) -> str:
    """A line of sshd_config that runs `script` in place of what was asked for; as a login shell's start-up would."""
    path = sshd_home / "force.sh"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return f"ForceCommand {path}"


@pytest.mark.parametrize("shell", ["tcsh", "fish", "zsh", "bash", "dash"])
def test_login_shells(tmp_path: Path, connect: Connect, shell: str) -> None:
    """What arrives at the host is given to the login shell, whatever that is."""
    name = program(shell, shell)
    script = f'#!/bin/sh\nexec {name} -c "$SSH_ORIGINAL_COMMAND"\n'
    with server(tmp_path / "s", with_command(tmp_path, script)) as far:
        content_through(connect(far), tmp_path / "a.log")


def test_noise_of_start_up_files_banner_and_message_of_the_day(tmp_path: Path, connect: Connect) -> None:
    banner = tmp_path / "banner"
    banner.write_text("*** authorised use only ***\n" * 20)
    script = (
        "#!/bin/sh\nhead -c 200000 /dev/urandom\necho 'Welcome! trainmon-ready 00 python'\necho noise >&2\n"
        'exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    with server(tmp_path / "s", with_command(tmp_path, script), f"Banner {banner}", "PrintMotd yes") as far:
        near = connect(far)
        content_through(near, tmp_path / "a.log")
        assert near.host.problem == ""


def test_a_shell_that_prints_without_end(tmp_path: Path, connect: Connect) -> None:
    with server(tmp_path / "s", with_command(tmp_path, "#!/bin/sh\nexec yes\n")) as far:
        assert "prints without end" in problem_of(connect(far))


def test_an_account_without_a_shell(tmp_path: Path, connect: Connect) -> None:
    script = "#!/bin/sh\necho 'This account is currently not available.' >&2\nexit 1\n"
    with server(tmp_path / "s", with_command(tmp_path, script)) as far:
        assert "not available" in problem_of(connect(far))


def test_through_a_second_sshd(sshd: Sshd, tmp_path: Path, connect: Connect) -> None:
    with server(tmp_path / "s") as far:
        config = tmp_path / "both"
        jump = sshd.config.read_text().replace(f"Host {Sshd.HOST}", "Host gate")
        config.write_text(jump + far.config.read_text())
        near = Near(SshOptions(config_file=str(config), jump="gate"))
        try:
            content_through(near, tmp_path / "a.log")
            assert sshd.connections()
        finally:
            near.close()


def test_a_wrong_key(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(
        [program("ssh-keygen", "openssh-client"), "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")]
    )
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.key), str(tmp_path / "k")))
    near = Near(SshOptions(config_file=str(config)))
    try:
        problem = problem_of(near)
        assert "Permission denied" in problem
        assert "log in once by hand" in problem
    finally:
        near.close()


def test_an_unknown_host_key(sshd: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), str(tmp_path / "empty")))
    near = Near(SshOptions(config_file=str(config)))
    try:
        problem = problem_of(near)
        assert "Host key verification failed" in problem
        assert "fingerprint" in problem
        assert not (tmp_path / "empty").exists()
    finally:
        near.close()


def test_a_host_that_is_down_or_unknown(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host far\n  HostName 127.0.0.1\n  Port 1\n")
    for host, word in (("far", "refused"), ("no-such-host.invalid", "resolve")):
        near = Near(SshOptions(config_file=str(config)), Address(host))
        try:
            problem = problem_of(near)
            assert word in problem
            assert problem.startswith(f"{host}: ")
            assert "\n" not in problem
        finally:
            near.close()


def test_no_ssh_client_at_all() -> None:
    near = Near(SshOptions(program="/no/such/ssh"))
    try:
        assert "install OpenSSH" in problem_of(near)
    finally:
        near.close()


def test_a_configuration_that_runs_something_else(sshd: Sshd, tmp_path: Path) -> None:
    """RemoteCommand, terminals and forwarded ports of the user's configuration are not for the reader."""
    config = tmp_path / "config"
    more = "    RemoteCommand tmux attach\n    RequestTTY force\n    LocalForward 127.0.0.1:1 127.0.0.1:1\n"
    config.write_text(sshd.config.read_text() + more)
    near = Near(SshOptions(config_file=str(config)))
    try:
        content_through(near, tmp_path / "a.log")
    finally:
        near.close()


def test_the_users_own_shared_connection_is_used(sshd: Sshd, tmp_path: Path, sockets: Path) -> None:
    socket = sockets / "theirs"
    config = tmp_path / "config"
    text = sshd.config.read_text().replace("ControlPath none", f"ControlPath {socket}")
    config.write_text(text + "    ControlMaster auto\n    ControlPersist 30\n")
    ssh = [program("ssh", "openssh-client"), "-F", str(config)]
    subprocess.run([*ssh, "-f", "-N", Sshd.HOST], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    logins = len(sshd.connections())
    near = Near(SshOptions(config_file=str(config)))
    try:
        content_through(near, tmp_path / "a.log")
        assert not near.host.master.is_ours
        near.close()
        check = subprocess.run([*ssh, "-O", "check", Sshd.HOST], capture_output=True)
        assert check.returncode == 0, "their connection was ended"
        assert logins
    finally:
        subprocess.run([*ssh, "-O", "exit", Sshd.HOST], capture_output=True)


def test_ours_is_private_and_used_again(sshd: Sshd, sockets: Path, connect: Connect, tmp_path: Path) -> None:
    assert connect(sshd).hosts.connect([ADDRESS]) == ()
    place = sockets / "trainmon"
    assert place.stat().st_mode & 0o077 == 0
    before = {path.name for path in place.iterdir()}
    assert before
    content_through(connect(sshd), tmp_path / "a.log")
    assert {path.name for path in place.iterdir()} == before


def test_connecting_before_the_screen_says_who_cannot_be_reached(sshd: Sshd, connect: Connect) -> None:
    near = connect(sshd)
    problems = near.hosts.connect([ADDRESS, Address("no-such-host.invalid")])
    assert len(problems) == 1
    assert problems[0].startswith("no-such-host.invalid: ")


def test_passed_on_options(sshd: Sshd, tmp_path: Path) -> None:
    options = SshOptions(
        identities=(str(sshd.key),),
        options=(
            "HostName=127.0.0.1",
            f"Port={sshd.port}",
            f"UserKnownHostsFile={sshd.known_hosts}",
            "IdentitiesOnly=yes",
        ),
    )
    near = Near(options, Address("by-options"))
    try:
        content_through(near, tmp_path / "a.log")
    finally:
        near.close()


def test_how_long_attempts_are_apart(sshd: Sshd, connect: Connect) -> None:
    """They double up to a minute, and are not at the same moment for all that lost a host."""
    from trainmon.tails.ssh import host as module

    host = connect(sshd).host
    delays = []
    for _ in range(9):
        host._lose("gone")
        delays.append(host._retry_at - CLOCK.monotonic())
    for place, delay in enumerate(delays):
        base = min(module.RETRY_FIRST_S * 2**place, module.RETRY_LAST_S)
        assert 0.45 * base <= delay <= 1.5 * base
