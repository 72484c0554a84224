"""Searches on several hosts at once: one that hangs holds up no other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from trainmon.tails.jobs import JobSource
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.hosts import hosts
from trainmon.tails.ssh.search import Searched, search
from trainmon.tails.target import Target

_AT_ONCE = 16


def search_hosts(targets: Sequence[Target], jobs: JobSource | None = None) -> list[Searched]:
    """What `targets` name on other hosts, host by host in the order of the targets. Blocks.

    `jobs`: who knows the jobs of schedulers there.
    """
    by_host: dict[Address, list[Target]] = {}
    for target in targets:
        if target.remote is not None:
            by_host.setdefault(target.remote.address, []).append(target)
    if not by_host:
        return []
    known = hosts()
    with ThreadPoolExecutor(max_workers=min(len(by_host), _AT_ONCE)) as pool:
        return list(
            pool.map(lambda item: search(known.host(item[0]), item[1], known.heads(item[0]), jobs), by_host.items())
        )
