"""What trackers keep in encodings of their own that nothing here reads: named, with what to do instead."""

from __future__ import annotations

from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_LOG_TOO: Final = "have the trainer log JSON lines or event files too"


@dataclass(frozen=True, slots=True)
class UnreadStore:
    """Whose it is and what to do: ``a store that only Aim can read: ...``."""

    owner: str
    advice: str


_AIM = UnreadStore("Aim", f"{_LOG_TOO}, or export the runs to CSV with Aim's SDK")
_VISUALDL = UnreadStore("VisualDL", f"{_LOG_TOO}, or export its scalars (visualdl.LogReader) to CSV")
_MINDSPORE = UnreadStore("MindInsight", f"{_LOG_TOO}, or keep what MindSpore's LossMonitor prints in a file")
_SWANLAB = UnreadStore(
    "the SwanLab that wrote it", f"{_LOG_TOO}, or take a newer SwanLab, whose backup.swanlab is read"
)
_NAMES = lazy(r"(?P<visualdl>vdlrecords\.\d+.*\.log)|(?P<mindspore>.+\.events\.summary\.\d+\..+_MS)")
_RUN = lazy(r"run-\d{8}_\d{6}-\w+")


def unread_store(folder: str, name: str) -> UnreadStore | None:
    """What `name` in the directory `folder` is, where it is such a store.

    >>> unread_store("repo", ".aim").owner, unread_store("vdl", "vdlrecords.1700000000.log").owner
    ('Aim', 'VisualDL')
    >>> unread_store("swanlog/run-20240501_101500-a1b2c3d4", "logs").owner, unread_store("wandb", "logs")
    ('the SwanLab that wrote it', None)
    """
    if name == ".aim":
        return _AIM
    if name == "logs":
        *above, run = folder.split("/")
        return _SWANLAB if above[-1:] == ["swanlog"] and _RUN.fullmatch(run) else None
    if "." in name and (match := _NAMES.fullmatch(name)):
        return _VISUALDL if match["visualdl"] else _MINDSPORE
    return None
