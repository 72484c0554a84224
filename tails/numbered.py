"""Logs whose names end in a number (out.0, train.log.2): ranks, parts of a log that was rotated, or runs of their own.

With the log that they are named after beside them they are its older parts (`tails.parts`), unless one has number 0:
no rotation that `tails.parts` follows makes that, ranks do. Without it their steps tell: parts follow one another,
the highest number first.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import pairwise

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import numbered_name
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.scan import Folder, Found, LocalPlaces

_END_BYTES = 64 << 10
_STEP = lazy(
    rb"\b(?:global[ _]?step|step|iter(?:ation)?|update)\b[\"']?[ \t]{0,9}[:=|\[(]?[ \t]{0,9}[\[(\"']?(\d{1,15})", re.I
)

_ERRORS = lazy(r"(?:^|[/.])(?:std)?err$", re.I)


def settle_numbered(folder: Folder) -> None:
    """Takes rotated parts out of the files of `folder`, and gives the others their role and key."""
    by_stem: dict[str, dict[int, Found]] = {}
    for found in folder.files:
        if not found.path[-1].isdecimal():
            continue
        directory, base = os.path.split(found.path)
        if numbered := numbered_name(base):
            stem = os.path.join(directory, numbered[0])
            by_stem.setdefault(stem, {})[numbered[1]] = found
    written = {number for stem, parts in by_stem.items() if not _ERRORS.search(stem) for number in parts}
    for stem, parts in by_stem.items():
        if 0 in parts:
            continue
        # What a job said to its standard error (err.4) is no run without its output (out.4); schedulers tell of it.
        is_alone = bool(_ERRORS.search(stem)) and not parts.keys() & written
        if is_alone or folder.places.exists(stem):
            gone = {found.path for found in parts.values()}
            folder.files = [found for found in folder.files if found.path not in gone]
        elif isinstance(folder.places, LocalPlaces) and _follow(parts):
            for found in parts.values():
                found.look = replace(found.look, role="stdout")
        else:
            for number, found in parts.items():
                key = "-".join(filter(None, (found.look.key, str(number))))
                found.look = replace(found.look, role="stdout", key=key)


def _follow(parts: dict[int, Found]) -> bool:
    """Whether the steps of each part come after those of the next higher number."""
    spans = [_span(parts[number].path) for number in sorted(parts, reverse=True)]
    known = [span for span in spans if span is not None]
    return len(known) == len(spans) and all(older[1] <= newer[0] for older, newer in pairwise(known))


def _span(path: str) -> tuple[int, int] | None:
    """The first and the last step that a log tells in its first and last 64 KiB; None when it tells none."""
    try:
        fd, status = open_regular(path)
    except (NotRegular, OSError):
        return None
    try:
        first = _STEP.search(os.pread(fd, _END_BYTES, 0))
        last = _STEP.findall(os.pread(fd, _END_BYTES, max(status.st_size - _END_BYTES, 0)))
    except OSError:
        return None
    finally:
        close(fd)
    return (int(first[1]), int(last[-1])) if first and last else None
