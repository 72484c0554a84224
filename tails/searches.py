"""Targets are searched host by host, each in its own time; what was found is put together in the order of the hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trainmon.tails.discover import Discovery
from trainmon.tails.target import TargetError, TargetKind, parse

if TYPE_CHECKING:
    from trainmon.tails.ssh.address import Address


def by_host(targets: Sequence[str], cwd: Path) -> dict[Address | None, tuple[str, ...]]:
    """The targets of each host, None for this one; no targets at all are one search here."""
    parts: dict[Address | None, tuple[str, ...]] = {}
    for text in targets:
        try:
            remote = parse(text, cwd).remote
        except TargetError:
            remote = None
        address = remote.address if remote is not None else None
        parts[address] = (*parts.get(address, ()), text)
    return parts or {None: ()}


def may_find_more(targets: Sequence[str], cwd: Path, found: Discovery) -> bool:
    """Whether a target is one that new files can appear in."""
    if not targets or found.may_grow:
        return True
    for text in targets:
        try:
            if parse(text, cwd).kind in (TargetKind.DIR, TargetKind.GLOB):
                return True
        except TargetError:
            continue
    return False


def together(
    found: dict[Address | None, Discovery],
    parts: dict[Address | None, tuple[str, ...]],
    targets: tuple[str, ...],
    cwd: Path,
) -> Discovery:
    """What was found on all hosts so far. Whether a host can be reached is asked of its connection, not told here."""
    in_order = [found[address] for address in (None, *(part for part in parts if part is not None)) if address in found]
    runs = tuple(run for each in in_order for run in each.runs)
    problems = tuple(problem for each in in_order for problem in each.problems if problem not in each.down)
    searched = "; ".join(each.searched for each in in_order if each.searched)
    return Discovery(runs, problems, searched, targets, cwd)
