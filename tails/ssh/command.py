"""The command lines for ssh, as lists of words: no shell is ever between, and a host stands behind ``--``."""

from __future__ import annotations

import os
import subprocess
from dataclasses import field
from typing import Final

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.options import SshOptions
from trainmon.tails.ssh.trouble import last_line

# The same words for every host and target. Any login shell can read it: single quotes, no ! and no line end in them.
START_THERE: Final = 'exec env LC_ALL=C sh -c \'read -r size; eval "$(dd bs=1 count="$size" 2>/dev/null)"\''

_ALWAYS: Final = ("-T", "-a", "-x", "-o", "PermitLocalCommand=no", "-o", "ClearAllForwardings=yes")
# What a configuration may say that would keep the reader from running; older clients do not know all of them.
_MUST_BE: Final = {
    "remotecommand": ("RemoteCommand", "none"),
    "sessiontype": ("SessionType", "default"),
    "stdinnull": ("StdinNull", "no"),
    "forkafterauthentication": ("ForkAfterAuthentication", "no"),
}
_USUAL: Final = {"none", "default", "no", ""}
_ASK_S: Final = 15.0


def quiet_environment() -> dict[str, str]:
    """For an ssh that may ask nothing: one that it starts for a jump host does not know, and could open a window."""
    return {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the user's configuration says of a host (``ssh -G``), and the words that put right what would be in the way.

    `problem`: why ssh does not even take the host, one line.
    """

    settings: dict[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    problem: str = ""

    def __getitem__(self, name: str) -> str:
        return self.settings.get(name, "")


def resolve(address: Address, options: SshOptions) -> Resolved:
    """Asks ssh for its settings of the host. Blocks, as long as a ``Match exec`` of the configuration takes."""
    argv = [options.program, "-G", *_ALWAYS, *options.arguments(), *_where(address)]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S, check=False)
    except FileNotFoundError:
        return Resolved(problem="there is no ssh client on this machine; install OpenSSH")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Resolved(problem=f"ssh cannot be run here ({type(error).__name__}); check its configuration")
    if done.returncode:
        return Resolved(problem=last_line(done.stderr) or "ssh does not take this host; check its configuration")
    settings: dict[str, str] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition(" ")
        settings.setdefault(name, value)
    extra: list[str] = []
    for name, (option, value) in _MUST_BE.items():
        if settings.get(name, "").lower() not in _USUAL:
            extra += ["-o", f"{option}={value}"]
    if settings.get("connecttimeout", "none") in ("none", "0"):
        extra += ["-o", "ConnectTimeout=15"]
    if settings.get("serveraliveinterval", "0") == "0":
        extra += ["-o", "ServerAliveInterval=15"]
    return Resolved(settings, tuple(extra))


def command_line(
    address: Address,
    options: SshOptions,
    resolved: Resolved,
    control: tuple[str, ...] = (),
    *,
    batch: bool,
    mode: tuple[str, ...] = (),
    command: str = "",
) -> list[str]:
    """The words that run `command` on the host. `batch`: never ask anything. `control`: words on the shared
    connection; `mode`: further flags (``-f -N``, ``-O check``)."""
    words = [options.program, *_ALWAYS, *resolved.extra, *control]
    if batch:
        words += ["-o", "BatchMode=yes"]
    return [*words, *options.arguments(), *mode, *_where(address), *([command] if command else [])]


def _where(address: Address) -> list[str]:
    words = ["-p", str(address.port)] if address.port is not None else []
    words += ["-l", address.user] if address.user else []
    return [*words, "--", address.host]
