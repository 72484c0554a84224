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
    """The nearest trainmon.toml in `folder` or at most `LEVELS_UP` directories above it; None when there is none.

    Never looks into the root, the directory that holds the home directories, or a directory that anyone may write to
    (/tmp): a file there would be a stranger's word about everybody's runs.
    """
    try:
        place = folder.resolve()
        if not place.is_dir():  # not there yet, or no path of this machine (host:PATH)
            return None
    except (OSError, RuntimeError, ValueError):
        return None
    homes = {Path("/"), Path("/home"), _home_parent()}
    for _ in range(LEVELS_UP + 1):
        if place in homes or place == place.parent:
            return None
        found = place / SETTINGS_NAME
        try:
            here = place.stat()
            if not here.st_mode & _MAY_ANYONE_WRITE and stat.S_ISREG(found.stat().st_mode):
                return found
        except OSError:
            pass  # not there, or not ours to see: go on above
        place = place.parent
    return None


def owner_of(path: str) -> str:
    """The login name (else the number) of the owner of a local file, "" where that cannot be told.

    >>> owner_of("/no/such/file")
    ''
    """
    try:
        if silent_mount(path) is not None:
            return ""
        uid = os.stat(path).st_uid  # noqa: PTH116 - a path that is only a label (host:PATH) is not there
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
