"""The trainmon.toml of a directory above a run's logs, and whose word a settings file is."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from trainmon.tails.probe import silent_mount

SETTINGS_NAME: Final = "trainmon.toml"
LEVELS_UP: Final = 4  # <project>/<experiment>/<run>/<version>/metrics.csv is the deepest nesting that trainers make
_MAY_ANYONE_WRITE: Final = stat.S_IWOTH


def settings_above(folder: Path) -> Path | None:
    """As `SettingsAbove.nearest`, for one folder."""
    found = SettingsAbove().nearest(str(folder))
    return Path(found) if found is not None else None


class SettingsAbove:
    """Finds the trainmon.toml above many folders: they lie beside each other, and each directory is asked once."""

    def __init__(self) -> None:
        self._homes = {"/", "/home", str(_home_parent())}
        self._real: dict[str, str] = {}  # of the directories that folders lie in
        self._found: dict[str, str | None] = {}  # in each directory, links followed
        self._above: dict[tuple[str, int], str | None] = {}  # in each and so many above it
        self._nearest: dict[str, str | None] = {}

    def nearest(self, folder: str) -> str | None:
        """The nearest trainmon.toml in `folder` or at most `LEVELS_UP` directories above it; None when there is none.

        Never looks into the root, the directory that holds the home directories, or a directory that anyone may write
        to (/tmp): a file there would be a stranger's word about everybody's runs.
        """
        if folder not in self._nearest:
            place = self._real_directory(folder)
            self._nearest[folder] = None if place is None else self._from(place, LEVELS_UP)
        return self._nearest[folder]

    def _from(self, place: str, levels: int) -> str | None:
        if place in self._homes:
            return None
        if (place, levels) not in self._above:
            if place not in self._found:
                self._found[place] = _settings_in(place)
            found = self._found[place]
            if found is None and levels:
                found = self._from(place[: place.rindex("/")] or "/", levels - 1)
            self._above[place, levels] = found
        return self._above[place, levels]

    def _real_directory(self, folder: str) -> str | None:
        """`folder` with links followed; None when it is no directory."""
        above, _, name = folder.rpartition("/")
        try:
            if not above or name in ("", ".", ".."):
                place = os.path.realpath(folder)
                return place if os.path.isdir(place) else None
            if above not in self._real:
                self._real[above] = os.path.realpath(above)
            place = f"{self._real[above]}/{name}"
            mode = os.lstat(place).st_mode
            if stat.S_ISLNK(mode):
                place = os.path.realpath(place)
                return place if os.path.isdir(place) else None
            return place if stat.S_ISDIR(mode) else None
        except (OSError, ValueError):
            return None


def _settings_in(place: str) -> str | None:
    found = f"{place}/{SETTINGS_NAME}"
    try:
        mode = os.stat(found).st_mode
        if stat.S_ISREG(mode) and not os.stat(place).st_mode & _MAY_ANYONE_WRITE:
            return found
    except OSError:
        pass  # not there, or not ours to see: what lies above is looked at
    return None


def owner_of(path: str) -> str:
    """The login name (else the number) of the owner of a local file, "" where that cannot be told.

    >>> owner_of("/no/such/file")
    ''
    """
    try:
        if silent_mount(path) is not None:
            return ""
        uid = os.stat(path).st_uid
    except (OSError, ValueError):
        return ""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)


def _home_parent() -> Path:
    try:
        return Path.home().parent
    except RuntimeError:
        return Path("/")
