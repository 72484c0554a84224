"""Runs that write a JSON document for each step or epoch: step_10.json, step_20.json, ``{"step": 10, "loss": 2.5}``.

They are read as one log, the newest of them in the name of all (`series_tail`).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from trainmon.tails.formats.run_keys import names_run
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import Doubt, look_at_name
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.scan import Folder, Found, LocalPlaces
from trainmon.tails.steps import step_rank

_NAME = lazy(r"(.*?)(\d{1,15})(\.json)", re.IGNORECASE)
_COUNTERS: Final = frozenset(("step", "steps", "global", "epoch", "epochs", "iter", "iteration", "update"))
_MOST_BYTES: Final = 64 << 10  # of each: longer ones hold more than a record


def shape_of(path: str | Path) -> tuple[str, str, int] | None:
    """Directory and name without the number of a document that may be one of many, and its number.

    >>> shape_of("a/metrics_epoch_3.json"), shape_of("a/trainer_state.json")
    (('a', 'metrics_epoch_#.json', 3), None)
    """
    folder, name = os.path.split(os.fspath(path))
    match = _NAME.fullmatch(name)
    return (folder, f"{match[1]}#{match[3]}", int(match[2])) if match else None


def settle_documents(folder: Folder) -> None:
    """Puts the newest document of each run of `folder` that writes one a step in the place of all of them."""
    if not isinstance(folder.places, LocalPlaces):
        return
    alike: dict[tuple[str, str], dict[int, Found]] = {}
    for found in folder.files:
        shape = shape_of(found.path) if found.look.doubt is Doubt.JSON and found.look.role == "metrics" else None
        if shape is not None:
            alike.setdefault(shape[:2], {})[shape[2]] = found
    for (_, name), parts in alike.items():
        numbers = sorted(parts)
        word = name.partition("#")[0].rstrip("._- ").replace("-", "_").rpartition("_")[2]
        if _record(parts[numbers[-1]].path) is None:  # it may be being written
            numbers.pop()
        if not numbers or names_run(word):
            continue
        if not _follow({number: parts[number].path for number in (*numbers[:2], numbers[-1])}):
            continue
        gone = {found.path for found in parts.values()}
        newest = parts[numbers[-1]]
        look = look_at_name(name.replace("#", ""))
        words = look.key.split("-") if look is not None else []
        key = "-".join(word for word in words if word not in _COUNTERS)
        folder.files = [found for found in folder.files if found.path not in gone]
        folder.files.append(Found(newest.path, replace(newest.look, key=key, is_series=True)))


def _follow(documents: dict[int, str]) -> bool:
    """Whether each document is one record, of the same keys, at the step or epoch that the number in its name tells."""
    records = {number: _record(path) for number, path in documents.items()}
    known = {number: record for number, record in records.items() if record is not None}
    keys = [record.keys() for record in known.values()]
    if len(known) < len(records) or any(own != keys[0] for own in keys):
        return False
    return any(_is_told(key, known) for key in keys[0] if step_rank(key) is not None)


def _is_told(key: str, records: dict[int, dict[str, Any]]) -> bool:
    """Whether the value of `key` is the number of each record, or so many more (epochs from 0 or 1); a record that is
    alone may be what was measured at the end."""
    values = [(number, record[key]) for number, record in records.items()]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for _, value in values):
        return False
    apart = {value - number for number, value in values}
    return len(apart) == 1 and (len(values) > 1 or abs(apart.pop()) <= 1)


def _record(path: str) -> dict[str, Any] | None:
    try:
        data = content_of(path, _MOST_BYTES + 1)
        return msgspec.json.decode(data, type=dict[str, Any]) if len(data) <= _MOST_BYTES else None
    except (NotRegular, OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def content_of(path: str, most: int) -> bytes:
    """The first `most` bytes of a regular file. Raises OSError, NotRegular."""
    fd, _ = open_regular(path)
    try:
        return os.pread(fd, most, 0)
    finally:
        close(fd)
