"""What `trainmon watch` remembers of a directory: pins, acknowledged and snoozed episodes, order, filter, look, layout.

One small JSON file for each directory in the user's XDG state folder, private to the user, replaced in one piece,
with a checksum. A damaged file is said so and begun anew; one of another version, or of somebody else, is left alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec

from trainmon.tails.own_files import own_folder, read_private, write_private
from trainmon.tails.sealed import DamagedError, require_whole, sealed

SCHEMA = "trainmon.state/1"
_MOST_BYTES = 4_000_000
_MOST_EPISODES = 5_000  # the newest are kept

_LISTS = frozenset(("pins", "acknowledged", "snoozed", "added"))

Named = tuple[str, str]


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """How the screens were arranged, by the kind of the screen where they have it in common.

    `full`: id of the pane that had all the room; `enlarged`: number of the chart that did; `values`: maps by value in
    place of change; `apart`, `compared_by`: of the comparison; `family`: of the map of the layers.
    """

    full: dict[str, str] = {}
    enlarged: dict[str, str] = {}
    values: dict[str, bool] = {}
    apart: bool = False
    compared_by: str = ""
    family: str = ""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. `pins`: (name, target) of runs; `acknowledged`, `snoozed`: (name, target, episode id[, until]).

    `until` in wall seconds.
    """

    schema: str = SCHEMA
    directory: str = ""
    pins: tuple[Named, ...] = ()
    acknowledged: tuple[tuple[str, str, str], ...] = ()
    snoozed: tuple[tuple[str, str, str, float], ...] = ()
    order: str = "trouble"
    filter: str = ""
    only_troubled: bool = False
    axis: str = "step"
    smooth: bool = False
    log_y: bool | None = None
    clip: bool | None = None
    added: tuple[str, ...] = ()
    dark: bool | None = None
    layout: Layout = Layout()


class _Head(msgspec.Struct):
    """What every version has."""

    schema: str
    directory: str


class StateFile:
    """The state of the directory `directory` as a file in `folder`."""

    def __init__(self, directory: Path, folder: Path | None = None) -> None:
        if folder is None:
            folder = own_folder("state") / "watch"
        self.directory = str(directory.resolve())
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:20]
        self.path = folder / f"{digest}.json"
        self._ours = True
        self._mine: State | None = None  # as it was read here, or given to be written last

    def read(self) -> tuple[State, str]:
        """What was remembered and ""; an empty state and one line on why, where it cannot be used."""
        found, problem = self._read()
        self._mine = found
        return found, problem

    def _read(self) -> tuple[State, str]:
        empty = State(directory=self.directory)
        try:
            raw = read_private(self.path, _MOST_BYTES)
        except FileNotFoundError:
            return empty, ""
        except (OSError, ValueError) as error:
            self._ours = False
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return empty, f"{self.path}: {words}; ignored, nothing will be remembered"
        try:
            found = msgspec.json.decode(raw, type=_Head)
            if found.schema != SCHEMA or found.directory != self.directory:
                self._ours = False
                return empty, f"{self.path}: {found.schema[:40]!r} is of another version; nothing will be remembered"
            require_whole(raw)
            return msgspec.json.decode(raw, type=State), ""
        except (msgspec.MsgspecError, UnicodeDecodeError, DamagedError) as error:
            return empty, f"{self.path}: damaged ({str(error)[:80]}); pins and acknowledgements begin anew"

    def write(self, state: State) -> str:
        """Replaces the file in one piece; "" or one line on why it could not be written.

        What another watch of the same directory has put there meanwhile stays.
        """
        mine = state
        if self._ours and self._mine is not None:
            theirs, problem = self._read()
            state = state if problem else joined(self._mine, mine, theirs)
        if not self._ours:
            return ""
        kept = msgspec.structs.replace(
            state,
            directory=self.directory,
            acknowledged=state.acknowledged[-_MOST_EPISODES:],
            snoozed=state.snoozed[-_MOST_EPISODES:],
        )
        try:
            write_private(self.path, sealed(msgspec.json.format(msgspec.json.encode(kept), indent=1)))
        except OSError as error:
            return f"{self.path}: {error.strerror or error}; pins and acknowledgements will not be remembered"
        self._mine = mine
        return ""


def joined(base: State, mine: State, theirs: State) -> State:
    """What two have made of `base`: of lists what either has added or taken away, of the rest mine where I changed it.

    >>> base, mine = State(pins=(("a", ""),), order="name"), State(pins=(("a", ""), ("b", "")), order="name")
    >>> two = joined(base, mine, State(pins=(("c", ""),), order="age"))
    >>> two.pins, two.order
    ((('c', ''), ('b', '')), 'age')
    """
    values: dict[str, object] = {}
    for name in State.__struct_fields__:
        before, here, there = (getattr(state, name) for state in (base, mine, theirs))
        if name in _LISTS:
            gone = set(before) - set(here)
            values[name] = tuple(dict.fromkeys([*(one for one in there if one not in gone), *_less(here, before)]))
        else:
            values[name] = there if here == before else here
    return msgspec.structs.replace(mine, **values)


def _less(some: tuple[Any, ...], others: tuple[Any, ...]) -> list[Any]:
    known = set(others)
    return [one for one in some if one not in known]
