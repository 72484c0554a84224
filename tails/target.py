"""What a TARGET on the command line means: [host:]PATH | DIR | GLOB | ssh://... | [host:]slurm:ID | - (stdin)."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.probe import silent_mount
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.address import Address, RemotePath, parse_remote


class TargetError(ValueError):
    """A target that can mean nothing; the message is one line to show as it is."""


class TargetKind(StrEnum):
    """What a target names."""

    PATH = "path"
    DIR = "dir"
    GLOB = "glob"
    STDIN = "stdin"
    SSH = "ssh"
    SLURM = "slurm"


@dataclass(frozen=True, slots=True)
class Target:
    """One target as it was typed (`text`), what it is (`kind`) and the path or pattern in it (`path`).

    `remote`: the host and path of one of kind SSH; of one of kind SLURM the host that the scheduler is on, and /.
    """

    text: str
    kind: TargetKind
    path: str = ""
    remote: RemotePath | None = None


_WILDCARD = lazy(r"[*?\[]")
_JOB = r"\d{1,12}(?:_\d{1,9}|_\[[\d,:%-]+\]|\+\d{1,4})?"
_SLURM = lazy(rf"slurm:(?:me|{_JOB})(?:,(?:me|{_JOB}))*", re.ASCII)


def parse(text: str, cwd: Path | None = None) -> Target:
    """Reads one target, relative paths as from `cwd`. What lies on the disk under the very name wins over any other
    meaning of it.

    Raises `TargetError` for an empty target, a NUL in it, or a URL or job that is cut short.

    >>> parse("ssh://me@cluster/runs/a.log").kind.value, parse("slurm:4711").kind.value
    ('ssh', 'slurm')
    >>> parse("cluster:slurm:4711").kind.value, parse("ssh://me@cluster:2222/slurm:me").remote.address.name
    ('slurm', 'me@cluster:2222')
    >>> parse("no/such/*.log").kind.value, parse("-").kind.value, parse("no/such/dir/").kind.value
    ('glob', 'stdin', 'dir')
    """
    if not text.strip():
        raise TargetError("empty target: name a file, a directory or a glob")
    if "\0" in text:
        raise TargetError("a target cannot hold a NUL character")
    if text == "-":
        return Target(text, TargetKind.STDIN)
    path = os.path.expanduser(text)
    there = os.path.join(cwd or "", path)
    if silent_mount(there) is None and os.path.lexists(there):
        return Target(text, TargetKind.DIR if os.path.isdir(there) else TargetKind.PATH, path)
    return _remote(text) or _local(text, path)


def _local(text: str, path: str) -> Target:
    if is_pattern(path):
        return Target(text, TargetKind.GLOB, path)
    return Target(text, TargetKind.DIR if path.endswith("/") else TargetKind.PATH, path)


def is_pattern(text: str) -> bool:
    """Whether it has a character that stands for others, as a shell's patterns.

    >>> is_pattern("runs/*.log"), is_pattern("runs/a.log")
    (True, False)
    """
    return _WILDCARD.search(text) is not None


def _remote(text: str) -> Target | None:
    try:
        jobs = scheduler_of(text)
        remote = parse_remote(text) if jobs is None else None
    except ValueError as error:
        raise TargetError(str(error)) from error
    if jobs is not None:
        address, words = jobs
        if not _SLURM.fullmatch(words):
            what = "needs a job id" if words == "slurm:" else "names no job"
            raise TargetError(
                f"{text}: {what}; write slurm:123456, slurm:123456_7 (array), slurm:me, host:slurm:123456"
            )
        return Target(text, TargetKind.SLURM, words, RemotePath(address, "/") if address is not None else None)
    return Target(text, TargetKind.SSH, remote.path, remote) if remote is not None else None


def scheduler_of(text: str) -> tuple[Address | None, str] | None:
    """The host whose scheduler `text` asks (None: this one) and what it asks for; None for what is no such target.

    Raises ValueError, one line to show, for a host that cannot be.

    >>> scheduler_of("slurm:12"), scheduler_of("me@cluster:slurm:12")[1], scheduler_of("cluster:/a/slurm:12")
    ((None, 'slurm:12'), 'slurm:12', None)
    """
    head, mark, ids = text.partition("slurm:")
    if not mark:
        return None
    if not head:
        return None, text
    if not head.startswith("ssh://"):
        head += "/"
    remote = parse_remote(head) if head.endswith((":/", "/")) else None
    return (remote.address, mark + ids) if remote is not None and remote.path == "/" else None
