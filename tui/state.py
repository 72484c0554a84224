"""What `trainmon watch` remembers of a directory: pins, acknowledged and snoozed episodes, order, filter, look, layout.

One small JSON file for each directory in the user's XDG state folder, private to the user, replaced in one piece,
with a checksum. A damaged file is said so and begun anew; one of another version, or of somebody else, is left alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from trainmon.tails.own_files import own_folder, read_private, write_private
from trainmon.tails.sealed import DamagedError, require_whole, sealed

SCHEMA = "trainmon.state/1"
_MOST_BYTES = 4_000_000
_MOST_EPISODES = 5_000  # the newest are kept

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

    def read(self) -> tuple[State, str]:
        """What was remembered and ""; an empty state and one line on why, where it cannot be used."""
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
        """Replaces the file in one piece; "" or one line on why it could not be written."""
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
        return ""
