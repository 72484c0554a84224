"""Files that trainmon itself writes: replaced in one piece, private where they are state."""

from __future__ import annotations

import contextlib
import glob
import os
import stat
from pathlib import Path
from typing import Final, Literal

# Nothing can be made below a device, by no one: what is to be kept there fails as it would on a full disk.
NOWHERE = Path("/dev/null/no-home-directory-is-known")

_DRAFT: Final = ".tmp"
_STALE_S: Final = 3600.0
_swept: set[Path] = set()  # the drafts of which were looked for

_XDG: Final = {
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
    "config": ("XDG_CONFIG_HOME", ".config"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
}


def own_folder(kind: Literal["data", "state", "config", "cache"]) -> Path:
    """This user's folder for what is of this kind (XDG). `NOWHERE` where no one says where home is.

    That is so for a user who is in no list of users, in a container say, and never a folder of the current directory.
    """
    variable, below_home = _XDG[kind]
    given = Path(os.environ.get(variable, ""))
    if given.is_absolute():
        return given / "trainmon"
    try:
        home = Path.home()
    except RuntimeError:
        return NOWHERE
    return home / below_home / "trainmon" if home.is_absolute() else NOWHERE


def write_private(path: Path, data: bytes) -> None:
    """Replaces `path` in one piece by a file that only this user may read, and makes its folder (0700) if need be.

    After a crash there is the old file or the new one, never half of one. Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(path, data, mode=0o600)
    if path not in _swept:
        _swept.add(path)
        _sweep(path)


def write_output(path: Path, data: bytes) -> None:
    """Writes what the user asked for: a plain file in one piece, into a device or a pipe as it is. Raises OSError."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    mask = os.umask(0)
    os.umask(mask)
    target = path.resolve() if path.is_symlink() else path
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~mask
    _replace(target, data, mode=mode)


def _sweep(path: Path) -> None:
    """Removes the drafts of `path` that a killed program left behind, long before `path` was last written."""
    with contextlib.suppress(OSError):
        now = path.stat().st_mtime  # by the clock of the file system
        for draft in path.parent.glob(f"{glob.escape(_draft(path))}*{_DRAFT}"):
            if draft.lstat().st_mtime < now - _STALE_S:
                draft.unlink()


def _draft(path: Path) -> str:
    return f".{path.name[:40]}-"


def _replace(path: Path, data: bytes, mode: int) -> None:
    import tempfile  # for those who write

    descriptor, temporary = tempfile.mkstemp(prefix=_draft(path), suffix=_DRAFT, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def read_private(path: Path, most_bytes: int) -> bytes:
    """The bytes of a plain file that belongs to this user.

    Raises FileNotFoundError, OSError, and ValueError for what this user's trainmon cannot have written.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a plain file")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise ValueError("belongs to another user")
        if found.st_size > most_bytes:
            raise ValueError("far larger than this program writes")
        return file.read(most_bytes)
