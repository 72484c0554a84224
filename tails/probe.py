"""Does a file system answer? Asked in a thread of its own, so that a dead server stops nobody who asks."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from trainmon.tails.fstype import Mount, mount_behind
from trainmon.tails.opening import show

PATIENCE_S = 3.0

_pending: dict[str, threading.Thread] = {}
_lock = threading.Lock()


def silent_mount(path: str | Path, mounts: tuple[Mount, ...] | None = None) -> Mount | None:
    """The mount that `path` leads to when its server does not answer within `PATIENCE_S`; None when all is well.

    A mount that has not answered yet is not asked again: it is silent until that first call returns.
    """
    mount = mount_behind(path, mounts)
    if not mount.may_hang:
        return None
    with _lock:
        asked = _pending.get(mount.point)
        is_new = asked is None or not asked.is_alive()
        if is_new:
            asked = threading.Thread(
                target=_ask, args=(mount.point,), name=f"trainmon-probe {mount.point}", daemon=True
            )
            _pending[mount.point] = asked
            asked.start()
    assert asked is not None
    asked.join(PATIENCE_S if is_new else 0.0)
    return mount if asked.is_alive() else None


def silence(path: str | Path, mount: Mount) -> str:
    """One line to show for `path` on a `mount` that is silent."""
    where = f"the file system at {show(mount.point)} ({mount.fstype})"
    return f"{show(path)}: {where} does not answer; is its server up? It is tried again"


def _ask(point: str) -> None:
    try:
        os.statvfs(point)  # unlike stat, never answered from a cache
    except OSError:
        return  # an answer too
