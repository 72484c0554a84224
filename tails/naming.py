"""Names of runs: the shortest path that tells them apart."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import look_at_name
from trainmon.tails.opening import show

_TELLS_NOTHING = lazy(
    r"(?i)(?:stdout|stderr|std|train(?:ing)?|metrics?|raw|data|tmp|test)?[_-]?(?:logs?|runs?|out(?:puts?)?|results?|files)?"
)


def name_runs(paths: Sequence[str], cwd: Path, taken: Iterable[str] = (), named: Collection[str] = ()) -> list[str]:
    """A name for each of `paths`: its last components, as few as tell it apart from the others and from `taken`.

    A file whose own name says nothing (train.log) is shown with its directory. Of several runs, one that has a
    directory to itself is called by the directory, where that says more; not so a file of `named`, which the user
    named. Names are printable and unique.

    >>> name_runs(["/w/runs/a/train.log", "/w/runs/b/train.log", "/w/runs/c"], Path("/w"))
    ['a/train.log', 'b/train.log', 'c']
    >>> name_runs(["/w/ppo/ray.log", "/w/sft/measurements.csv", "/w/logs/llama-7b.log"], Path("/w"))
    ['ppo', 'sft', 'llama-7b.log']
    """
    used = set(taken)
    here = os.path.abspath(cwd)
    whole = [os.path.abspath(os.path.join(here, path)) for path in paths]
    parts = [_parts(path, here) for path in whole]
    for place in _alone(whole):
        if paths[place] not in named and _says_less(parts[place]):
            del parts[place][-1]
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


def _alone(whole: Sequence[str]) -> list[int]:
    """Which of several absolute paths have the directory they lie in, and all below it, to themselves."""
    if len(whole) < 2:
        return []
    folders = [os.path.dirname(path) for path in whole]
    below = Counter(folders)  # how many lie in and below each directory
    for folder, count in list(below.items()):
        for above in _above(folder):
            below[above] += count
    own = set(whole)
    return [place for place, folder in enumerate(folders) if below[folder] == 1 and folder not in own]


def _above(path: str) -> Iterator[str]:
    while (folder := os.path.dirname(path)) != path:
        yield folder
        path = folder


def _says_less(components: list[str]) -> bool:
    """Whether the last component is a file that tells less of its run than the directory does: one word, no number."""
    if len(components) < 2 or "." not in components[-1]:
        return False
    look = look_at_name(components[-1])
    word = components[-1].partition(".")[0]
    return look is not None and bool(look.key) and word.isalpha() and not _TELLS_NOTHING.fullmatch(components[-2])


def _parts(absolute: str, here: str) -> list[str]:
    """The components of a path that are shown, from `here` on where it lies below."""
    if absolute == here:
        return [os.path.basename(absolute) or "/"]
    below = f"{here.rstrip('/')}/"
    # What begins with two dots is shown whole, as what lies elsewhere is.
    shown = absolute[len(below) :] if absolute.startswith(below) else absolute
    shown = absolute if shown.startswith("..") else shown
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
