"""The current directory, also where it was removed under us."""

from __future__ import annotations

import os
from pathlib import Path


def here() -> Path:
    """The current directory. One that is gone (a job's scratch folder, say) is called as the shell knew it: what is
    named from the root can still be read, and what is not is said not to be there."""
    try:
        return Path.cwd()
    except OSError:
        told = Path(os.environ.get("PWD", ""))
        return told if told.is_absolute() else Path("/")
