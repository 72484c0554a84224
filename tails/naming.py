"""Names of runs: the shortest path that tells them apart."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from trainmon.tails.looks import look_at_name
from trainmon.tails.opening import show


def name_runs(paths: Sequence[str], cwd: Path, taken: Iterable[str] = ()) -> list[str]:
    """A name for each of `paths`: its last components, as few as tell it apart from the others and from `taken`.

    A file whose own name says nothing (train.log) is shown with its directory. Names are printable and unique.

    >>> name_runs(["/w/runs/a/train.log", "/w/runs/b/train.log", "/w/runs/c"], Path("/w"))
    ['a/train.log', 'b/train.log', 'c']
    """
    used = set(taken)
    parts = [_parts(path, cwd) for path in paths]
    lengths = [min(_least(components), len(components)) for components in parts]
    while True:
        names = ["/".join(part[-length:]) for part, length in zip(parts, lengths, strict=True)]
        counts = Counter(names)
        grown = False
        for place, name in enumerate(names):
            if (counts[name] > 1 or name in used) and lengths[place] < len(parts[place]):
                lengths[place] += 1
                grown = True
        if not grown:
            return _numbered([show(name) for name in names], used)


def _parts(path: str, cwd: Path) -> list[str]:
    absolute = os.path.abspath(cwd / path)  # noqa: PTH100 - links are kept as they were named
    relative = os.path.relpath(absolute, cwd)
    if relative == ".":
        return [os.path.basename(absolute) or "/"]  # noqa: PTH119
    shown = absolute if relative.startswith("..") else relative
    return [part for part in shown.split("/") if part] or ["/"]


def _least(components: list[str]) -> int:
    look = look_at_name(components[-1]) if "." in components[-1] else None
    return 2 if look is not None and not look.key else 1


def _numbered(names: list[str], used: set[str]) -> list[str]:
    out = []
    for name in names:
        unique, number = name, 2
        while unique in used:
            unique = f"{name} ({number})"
            number += 1
        used.add(unique)
        out.append(unique)
    return out
