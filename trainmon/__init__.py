"""trainmon: a terminal monitor for language-model training runs.

From Python::

    import trainmon

    run = trainmon.read("runs/llama-7b")
    run.verdict, run.series("loss.train").values
    trainmon.check("runs")

Importing this package costs nothing: the folders behind it are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmon.monitor.api import NothingToReadError, Run, check, read, read_all

__all__ = ["NothingToReadError", "Run", "check", "read", "read_all", "version"]


def version() -> str:
    """The installed version, or ``"0+uninstalled"`` when run from a bare checkout."""
    try:
        return metadata.version("trainmon")
    except metadata.PackageNotFoundError:
        return "0+uninstalled"


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("trainmon.monitor.api"), name)
    raise AttributeError(f"module 'trainmon' has no attribute {name!r}")
