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


def settings_above(folder: Path, known: dict[str, Path | None] | None = None) -> Path | None:
    """The nearest trainmon.toml in `folder` or at most `LEVELS_UP` directories above it; None when there is none.

    `known`: what was found in which directory, to be given again for other folders: runs lie beside each other.

    Never looks into the root, the directory that holds the home directories, or a directory that anyone may write to
    (/tmp): a file there would be a stranger's word about everybody's runs.
    """
    known = {} if known is None else known
    try:
        place = os.path.realpath(folder)
        if not os.path.isdir(place):
            return None
    except (OSError, ValueError):
        return None
    homes = {"/", "/home", str(_home_parent())}
    for _ in range(LEVELS_UP + 1):
        if place in homes:
            return None
        if place not in known:
            known[place] = _settings_in(place)
        if (found := known[place]) is not None:
            return found
        place = os.path.dirname(place)
    return None


def _settings_in(place: str) -> Path | None:
    found = os.path.join(place, SETTINGS_NAME)
    try:
        mode = os.stat(found).st_mode
        if stat.S_ISREG(mode) and not os.stat(place).st_mode & _MAY_ANYONE_WRITE:
            return Path(found)
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
