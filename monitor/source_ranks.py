"""Which rank wrote which file of a run, by the names of all of them together.

``rank3.log`` says it itself. ``worker-1.log``, ``node0/gpu2.log``, ``attempt_0/2/stdout.log`` and ``out.3`` say it
beside others of their kind that differ in nothing but such a number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import RANK_FOLDER, numbered_name

_GLOBAL = lazy(r"(?:^|[^a-z])(?:global[-_.]?)?rank[-_. =]?(\d{1,6})(?!\d)", re.IGNORECASE)
_WORD = lazy(
    r"(?:^|[^a-z])((?:local[-_.]?)?rank|node|host|worker|gpu|device|npu|proc|process|task|replica)[-_. =]?"
    r"(\d{1,6})(?!\d)",
    re.IGNORECASE,
)
_STREAMS = frozenset(("stdout", "stderr", "stdout.log", "stderr.log"))  # torchrun --log-dir: attempt_0/3/stdout.log
_ATTEMPT = lazy(r"attempt_\d+")
_Place = tuple[tuple[str, int], ...]  # what a path counts, from the outermost on: (("node", 0), ("worker", 3))


def ranks_of(paths: Iterable[str]) -> dict[str, str]:
    """The ranks of those of `paths` that are one rank's own; empty when they are not of several ranks.

    A number that all files share tells nothing. Where nodes and their processes are both counted the rank is the
    global one (node times processes a node, plus process), or ``node.process`` where nodes have unlike numbers.

    >>> ranks_of(["logs/worker-0.log", "logs/worker-1.log", "logs/train.log"])
    {'logs/worker-0.log': '0', 'logs/worker-1.log': '1'}
    >>> ranks_of(["a/attempt_0/0/stdout.log", "a/attempt_0/2/stdout.log", "a/attempt_1/2/stdout.log"])
    {'a/attempt_0/0/stdout.log': '0', 'a/attempt_0/2/stdout.log': '2', 'a/attempt_1/2/stdout.log': '2'}
    >>> list(ranks_of([f"node{node}/gpu{card}.log" for node in (0, 1) for card in (0, 1)]).values())
    ['0', '1', '2', '3']
    >>> ranks_of(["gpu3/train.log"]), ranks_of(["attempt_0/0/stdout.log", "attempt_1/0/stdout.log"])
    ({}, {})
    """
    by_shape: dict[tuple[str, ...], dict[str, _Place]] = {}
    paths = list(paths)
    folders = [str(PurePosixPath(path).parent) for path in paths]
    shared = len(PurePosixPath(os.path.commonpath(folders or [""])).parts)
    for path in paths:
        if place := _place(path, shared):
            by_shape.setdefault(tuple(word for word, _ in place), {})[path] = place
    ranks = {}
    for shape, places in by_shape.items():
        if shape[-1].endswith(".") and not any(place[-1][1] == 0 for place in places.values()):
            continue  # log.1 and log.2 are parts of a log that was rotated
        ranks.update(_numbered(places))
    return ranks if len(set(ranks.values())) > 1 else {}


def _place(path: str, shared: int) -> _Place:
    """What `path` counts behind its first `shared` directories, which are those of all files."""
    parts = PurePosixPath(path)
    named = _GLOBAL.search(parts.name)
    if named and not _is_local(parts.name, named.start()):
        return (("rank", int(named[1])),)
    return _counted(parts, shared)


def _is_local(name: str, at: int) -> bool:
    return name[: at + 1].lower().rstrip("-_.").endswith("local")


def _counted(path: PurePosixPath, shared: int) -> _Place:
    place = []
    folders = path.parts[:-1]
    for index, name in list(enumerate(folders))[shared:]:
        if RANK_FOLDER.fullmatch(name):
            word = _WORD.match(name)
            place.append((word[1].lower(), int(word[2])) if word else ("", int(re.sub(r"\D", "", name))))
        elif name.isdigit() and len(name) < 7 and _is_of_torchrun(path, folders, index):
            place.append(("rank", int(name)))
    place += [(word.lower(), int(number)) for word, number in _WORD.findall(path.name)]
    if not place and (numbered := numbered_name(path.name)):
        place.append((f"{numbered[0]}.", numbered[1]))
    return tuple(place)


def _is_of_torchrun(path: PurePosixPath, folders: tuple[str, ...], index: int) -> bool:
    inner = index == len(folders) - 1
    return inner and (path.name in _STREAMS or (index > 0 and _ATTEMPT.fullmatch(folders[index - 1]) is not None))


def _numbered(places: dict[str, _Place]) -> dict[str, str]:
    """The rank of each path of one shape."""
    columns = list(zip(*([number for _, number in place] for place in places.values()), strict=True))
    varying = [column for column in columns if len(set(column)) > 1] or columns[-1:]
    rows = list(zip(*varying, strict=True))
    outer_of: dict[int, set[tuple[int, ...]]] = {}
    for row in rows:
        outer_of.setdefault(row[-1], set()).add(row[:-1])
    if all(len(outer) == 1 for outer in outer_of.values()):  # the innermost number alone tells them apart
        return {path: str(row[-1]) for path, row in zip(places, rows, strict=True)}
    sizes = [max(column) + 1 for column in varying]
    total = 1
    for size in sizes:
        total *= size
    is_whole = len(set(rows)) == total
    names = [_global(row, sizes) if is_whole else ".".join(map(str, row)) for row in rows]
    return dict(zip(places, names, strict=True))


def _global(row: tuple[int, ...], sizes: list[int]) -> str:
    rank = 0
    for number, size in zip(row, sizes, strict=True):
        rank = rank * size + number
    return str(rank)
