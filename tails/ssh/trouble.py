"""What ssh says when there is no connection, as one line: at which hop, why, and what to do about it."""

from __future__ import annotations

import re
import shlex

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.options import SshOptions

_KNOWN = re.compile(
    r"Permission denied|Host key verification failed|Could not resolve|Connection (?:refused|timed out|reset|closed)"
    r"|No route to host|Network is unreachable|Operation timed out|Too many authentication failures|Bad configuration"
    r"|REMOTE HOST IDENTIFICATION HAS CHANGED|administratively prohibited|kex_exchange_identification|not found"
    r"|account is currently not available|banner exchange|Bad stdio forwarding|open failed|timed out",
    re.IGNORECASE,
)
# What the ssh behind a jump host or ProxyCommand says when that has failed: each one says it once, and nothing else.
_BEHIND = re.compile(r"UNKNOWN port 65535")
_CUT_BY_IT = ("kex_exchange_identification", "ssh_exchange_identification")
_NOISE = re.compile(r"^terminating, |: terminating, |^stdio forwarding failed")
_NO_KEY = re.compile(r"Identity file (.+) not accessible: (.+)|Load key \"(.+)\": (bad permissions|.*denied)")
_CANNOT_GO_ON = re.compile(r"channel \d+: open failed: (.*)")
CUT = "it ended without saying why"
_GATE = re.compile(r"the jump host (\S+)(?: cannot go on to (\S+))?: ")


@dataclass(frozen=True, slots=True)
class Way:
    """How a host is reached: its `name`, the `hops` before it in order, and whether a ProxyCommand leads there."""

    name: str
    hops: tuple[str, ...] = ()
    has_proxy: bool = False


def last_line(stderr: bytes, way: Way | None = None) -> str:
    """Of what ssh said the line that tells what went wrong, else the last one; with the hop at which it did.

    >>> said = b"ssh: connect to host 10.0.0.1 port 22: Connection refused\\r\\nConnection closed by UNKNOWN port 65535"
    >>> last_line(said, Way("cluster", ("gate",)))
    'the jump host gate: ssh: connect to host 10.0.0.1 port 22: Connection refused'
    """
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    behind = sum(_BEHIND.search(line) is not None for line in lines)
    where = ""
    if behind and way is not None and (way.hops or way.has_proxy):
        lines = [line for line in lines if not _BEHIND.search(line) and not line.startswith(_CUT_BY_IT)] or [CUT]
        where = "the ProxyCommand of its configuration: "
    lines = [line for line in lines if not _NOISE.search(line)] or lines
    known = [line for line in lines if _KNOWN.search(line)]
    line = (known or lines or [""])[-1]
    if where and way is not None and way.hops:
        where, line = _at_hop(line, way, behind)
    if match := next((found for found in map(_NO_KEY.search, lines) if found and "denied" in line), None):
        key, why = match[1] or match[3], match[2] or match[4]
        line = f"{line.removesuffix('.')}, and the key {key} cannot be used ({why.removesuffix('.')})"
    return where + line[:300].removesuffix(".")


def _at_hop(line: str, way: Way, behind: int) -> tuple[str, str]:
    """The hop that failed, and what was said of it; of a chain all behind that hop say that they were cut."""
    if line == CUT and len(way.hops) > 1:
        return f"one of the jump hosts {', '.join(way.hops)}: ", line
    place = max(len(way.hops) - behind, 0)
    match = _CANNOT_GO_ON.search(line)
    if match is None:
        return f"the jump host {way.hops[place]}: ", line
    following = (*way.hops, way.name)[place + 1]
    return f"the jump host {way.hops[place]} cannot go on to {following}: ", match[1]


def by_hand(address: Address, options: SshOptions, hop: str = "") -> str:
    """What to type to reach the host, or one hop before it, without trainmon.

    >>> by_hand(Address("far", "me", 2222), SshOptions(config_file="a b"))
    "ssh -F 'a b' -p 2222 me@far"
    """
    words = ["ssh"]
    if options.config_file:
        words += ["-F", options.config_file]
    if hop:
        name, colon, port = hop.rpartition(":")
        is_port = bool(colon) and port.isdigit() and (":" not in name or name.endswith("]"))
        return shlex.join([*words, *(["-p", port, name] if is_port else [hop])])
    words += SshOptions(jump=options.jump, identities=options.identities, options=options.options).arguments()
    if address.port is not None:
        words += ["-p", str(address.port)]
    return shlex.join([*words, f"{address.user}@{address.host}" if address.user else address.host])


def explain(address: Address, reason: str, options: SshOptions | None = None) -> str:
    """One line: which host, what is wrong, what to do."""
    return f"{address.name}: {reason}; {advice(address, reason, options or SshOptions())}"


def advice(address: Address, reason: str, options: SshOptions) -> str:
    """What to do about it."""
    lower = reason.lower()

    def says(*words: str) -> bool:
        return any(word in lower for word in words)

    if says("user config file"):
        return "-F takes the path of an ssh configuration; check it"
    if lower.startswith("command-line"):
        return "-o (--ssh-option) takes NAME=VALUE as in `man ssh_config`; check it"
    if says("bad configuration", "bad owner or permissions on"):
        return "mend that line of your ssh configuration (`man ssh_config`)"
    if says("invalid -j argument", "jumphost"):
        return "-J takes [USER@]HOST[:PORT], several apart by commas"
    gate = _GATE.search(reason)
    hop = gate[1] if gate else ""
    command = by_hand(address, options, hop)
    if gate is not None and gate[2]:
        if says("prohibited"):
            return "it does not allow forwarding to it; take another one (-J), or ask who runs it"
        return f"is {gate[2]} up, and is its name right as seen from there? Try `{command}`"
    if says("permission denied", "authentication failures"):
        key = "" if hop else ", give the right key with -i,"
        return f"log in once by hand (`{command}`){key} or start trainmon in a terminal to be asked"
    if says("identification has changed", "host key verification"):
        return f"its host key is not known or has changed: connect once with `{command}` and compare the fingerprint"
    if says("resolve"):
        return "check the spelling of the host, or your ssh configuration (-F)"
    if says("refused", "timed out", "unreachable", "no route"):
        return (
            "is it up, and reachable from here (VPN)?"
            if hop
            else ("is it up, and reachable from here (VPN, jump host with -J)?")
        )
    if says("has not answered"):
        return f"trying again; if `{command} true` answers, a file system there hangs, and all its files wait for that"
    if says("not available", "not found"):
        return "its login shell must be able to run sh"
    return f"trying again; see what `{command} true` says"
