"""Which episodes of a run somebody acknowledged in `trainmon watch`, from whichever directory it was watched."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.own_files import own_folder, read_private
from trainmon.tails.sealed import require_whole
from trainmon.tui.state import SCHEMA, State

_MOST_FILES: Final = 1_000
_MOST_BYTES: Final = 4_000_000


def with_seen(run: RunSnapshot, folder: Path | None = None) -> RunSnapshot:
    """`run` with its episodes marked that are acknowledged in any state file of `folder` (this user's)."""
    if not run.episodes:
        return run
    seen = {
        episode
        for state in _states(folder)
        for name, target, episode in state.acknowledged
        if _is_of(run, state.directory, name, target)
    }
    if seen.isdisjoint(episode.id for episode in run.episodes):
        return run
    marked = (replace(each, acknowledged=True) if each.id in seen else each for each in run.episodes)
    return replace(run, episodes=tuple(marked))


def _states(folder: Path | None) -> Iterator[State]:
    """Every state that can be read; what cannot is told by `watch`, whose it is."""
    if folder is None:
        folder = own_folder("state") / "watch"
    for path in sorted(folder.glob("*.json"))[:_MOST_FILES]:
        try:
            raw = read_private(path, _MOST_BYTES)
            require_whole(raw)
            state = msgspec.json.decode(raw, type=State)
        except (OSError, ValueError, msgspec.MsgspecError):  # no ValueErrors before msgspec 0.21
            continue
        if state.schema == SCHEMA:
            yield state


def _is_of(run: RunSnapshot, directory: str, name: str, target: str) -> bool:
    """Whether what was watched as `name` of `target` in `directory` is this run: its file, or so named below it."""
    if target == run.target and (":/" in target or target.startswith(("slurm:", "ssh://"))):
        return name == run.name
    place = os.path.realpath(Path(directory, target))
    files = [os.path.realpath(file.path) for file in run.files]
    if place in files:
        return True
    return name == run.name and any(file.startswith(place + os.sep) or fnmatchcase(file, place) for file in files)
