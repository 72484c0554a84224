"""What is said when there is no way to a host: the hop at which it ended, why, and what to do; all by a real ssh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import server
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.hosts import Hosts
from trainmon.tails.ssh.options import SshOptions
from trainmon.tails.ssh.trouble import Way, last_line

Parts = dict[str, str]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """Sections of an ssh configuration, by host: two jump hosts, one that forwards nothing, and what is behind them."""
    home = tmp_path_factory.mktemp("chain")
    with server(home / "a") as a, server(home / "b") as b, server(home / "c", "AllowTcpForwarding no") as closed:
        made = {"gate": a, "inner": b, "closed": closed, "far": b}
        yield {
            name: each.config.read_text().replace(f"Host {Sshd.HOST}", f"Host {name}") for name, each in made.items()
        }


def problem(parts: Parts, home: Path, **options: object) -> str:
    """What connecting to "far" says: one line, or "" when it is there."""
    config = home / "config"
    config.write_text("".join(parts.values()))
    hosts = Hosts(SshOptions(**{"config_file": str(config), **options}))  # type: ignore[arg-type]
    lines = hosts.connect([Address("far")])
    hosts.master(Address("far")).renew(is_stuck=True)
    assert all("\n" not in line for line in lines)
    return "".join(lines)


def refusing(part: str) -> str:
    return re.sub(r"Port \d+", "Port 1", part)


def without_key(part: str) -> str:
    return part.replace("id_ed25519", "none")


def unknown(part: str) -> str:
    return re.sub("UserKnownHostsFile .*", "UserKnownHostsFile /dev/null", part)


def nameless(part: str) -> str:
    return part.replace("HostName 127.0.0.1", "HostName no-such-host.invalid")


CASES = {
    "gate is down": ("gate", refusing, "gate,inner", "far: the jump host gate: ssh: connect to", "Connection refused"),
    "inner is down": ("inner", refusing, "gate,inner", "far: the jump host gate cannot go on to inner: ", "refused"),
    "far is down": ("far", refusing, "gate,inner", "far: the jump host inner cannot go on to far: ", "refused"),
    "gate's key": ("gate", without_key, "gate,inner", "far: the jump host gate: ", "Permission denied"),
    "inner's key": ("inner", without_key, "gate,inner", "far: the jump host inner: ", "Permission denied"),
    "far's key": ("far", without_key, "gate,inner", "far: root@127.0.0.1: Permission denied", "or start trainmon in"),
    "gate is unknown": ("gate", unknown, "gate", "far: the jump host gate: Host key verification", "fingerprint"),
    "far is unknown": ("far", unknown, "gate", "far: Host key verification failed", "compare the fingerprint"),
    "gate has no address": ("gate", nameless, "gate", "far: the jump host gate: ", "check the spelling"),
    "far has no address": (
        "far",
        nameless,
        "gate",
        "far: the jump host gate cannot go on to far: ",
        "as seen from there",
    ),
    "gate is misspelt": ("gate", str, "gaet", "far: the jump host gaet: ", "check the spelling"),
    "gate does not forward": ("gate", str, "closed", "far: the jump host closed cannot go on to far: ", "not allow"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_hop_that_failed_is_named(chain: Parts, tmp_path: Path, name: str) -> None:
    where, change, jump, begin, word = CASES[name]
    said = problem({**chain, where: change(chain[where])}, tmp_path, jump=jump)
    assert said.startswith(begin)
    assert word in said
    assert "UNKNOWN" not in said
    if "the jump host gate: " in said and "spelling" not in said and "is it up" not in said:
        assert f"`ssh -F {tmp_path}/config gate`" in said


def test_the_whole_chain_works(chain: Parts, tmp_path: Path) -> None:
    assert problem(chain, tmp_path, jump="gate,inner") == ""


def test_a_jump_host_of_the_configuration_is_named_too(chain: Parts, tmp_path: Path) -> None:
    parts = {**chain, "gate": refusing(chain["gate"]), "far": f"{chain['far']}    ProxyJump gate\n"}
    assert problem(parts, tmp_path).startswith("far: the jump host gate: ssh: connect to host 127.0.0.1 port 1: ")
    parts["far"] = f"{chain['far']}    ProxyCommand sh -c 'echo proxy: not found >&2'\n"
    assert problem(parts, tmp_path).startswith("far: the ProxyCommand of its configuration: proxy: not found; ")


@pytest.mark.parametrize(
    ("options", "reason", "hint"),
    [
        ({"config_file": "/nonexist"}, "user config file /nonexist: No such file", "-F takes the path"),
        ({"options": ("Foo=1",)}, "Bad configuration option: foo", "-o (--ssh-option) takes NAME=VALUE"),
        ({"options": ("Port=abc",)}, "Bad port 'abc'", "-o (--ssh-option) takes NAME=VALUE"),
        ({"options": ("Port",)}, 'no argument after keyword "port"', "-o (--ssh-option) takes NAME=VALUE"),
        ({"jump": "-x"}, "-J", "-J takes [USER@]HOST"),
        ({"identities": ("/nonexist",)}, "Permission denied (publickey), and the key /nonexist cannot be used", "-i"),
    ],
)
def test_a_mistaken_option_is_named(
    chain: Parts, tmp_path: Path, options: dict[str, object], reason: str, hint: str
) -> None:
    said = problem({**chain, "far": without_key(chain["far"])}, tmp_path, **options)
    assert said.startswith("far: ")
    assert reason in said
    assert hint in said.partition("; ")[2]


def test_a_mistake_in_the_configuration_is_named_with_its_line(chain: Parts, tmp_path: Path) -> None:
    said = problem({"far": f"{chain['far']}    Nonsense yes\n"}, tmp_path)
    assert f"{tmp_path}/config: line 12: Bad configuration option: nonsense; mend that line" in said


def test_the_host_of_the_target_stands_in_what_to_type(chain: Parts, tmp_path: Path) -> None:
    assert f"`ssh -F {tmp_path}/config far`" in problem({"far": without_key(chain["far"])}, tmp_path)


def test_more_cuts_than_hops_are_the_first_hop_s() -> None:
    said = b"Connection closed by UNKNOWN port 65535\n" * 5
    assert last_line(said, Way("far", ("gate",))).startswith("the jump host gate: ")
    assert last_line(b"", Way("far", ("gate",))) == ""
