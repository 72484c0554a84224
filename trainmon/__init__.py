"""trainmon: a terminal monitor for language-model training runs.

From Python::

    import trainmon

    run = trainmon.read("runs/llama-7b")
    run.verdict, run.series("loss.train").values
    trainmon.check("runs")

Importing this package costs nothing: the folders behind it are loaded when they are used.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing would cost more than all the rest of this module
if TYPE_CHECKING:
    from trainmon.monitor.api import NothingToReadError, Run, check, read, read_all

__all__ = ["NothingToReadError", "Run", "check", "read", "read_all", "version"]


def version() -> str:
    """The installed version, or ``"0+uninstalled"`` when run from a bare checkout."""
    found = _metadata_version()
    if found is not None:
        return found
    from importlib import metadata

    try:
        return metadata.version("trainmon")
    except metadata.PackageNotFoundError:
        return "0+uninstalled"


def version_line() -> str:
    """What ``--version`` says."""
    return f"trainmon, version {version()}"


def _metadata_version() -> str | None:
    """The version in the name of the first metadata directory on the path; ``importlib.metadata`` takes 50 ms."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - pathlib would be most of the time that this saves
        except OSError:
            continue
        for name in names:
            if name.startswith("trainmon-") and name.endswith(".dist-info"):
                return name.removeprefix("trainmon-").removesuffix(".dist-info")
    return None


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("trainmon.monitor.api"), name)
    raise AttributeError(f"module 'trainmon' has no attribute {name!r}")
