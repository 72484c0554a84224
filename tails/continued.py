"""Logs that lie beside each other and that one run wrote, start after start: slurm-100.out, slurm-101.out.

Without a scheduler to ask, what the logs hold decides. A later log goes on with an earlier one, whose name differs in
nothing but numbers, when its first step is behind the beginning of the run, no farther than where that stood, and its
losses are those that the run had: at common steps, or else of about the same size where one ends and the other begins.
A log that begins where the run began is another run, or a restart from scratch: nothing tells these apart, and they
stay apart. So do logs whose settings contradict each other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

import numpy as np

from trainmon.tails.formats import registry
from trainmon.tails.grouping import Group
from trainmon.tails.ingest import Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Parsed
from trainmon.tails.scan import Found
from trainmon.tails.steps import is_loss_key

_PIECES_BYTES: Final = (16 << 10, 256 << 10)  # of a log's head, until it shows a step
_TAIL_BYTES: Final = 64 << 10
_MOST_LOGS: Final = 64  # of names that are alike, the newest
_BEGINNING: Final = 0.02  # a step within this share of the run is where it began
_GAP: Final = 3.0  # logged steps between the end of one log and the beginning of the next
_AGREES: Final = 0.05  # relative
_NEARLY: Final = 0.25
_FIXED: Final = ("parameters", "seq_length")  # what no run changes on its way


@dataclass(slots=True)
class Piece:
    """What a piece of a log shows. `steps`, `losses`: (n,) of records with both; `facts`: settings."""

    steps: np.ndarray[tuple[int], np.dtype[np.float64]]
    losses: np.ndarray[tuple[int], np.dtype[np.float64]]
    facts: dict[str, float | str] = field(default_factory=dict)


@dataclass(slots=True)
class _Chain:
    groups: list[Group]
    paths: list[str]
    piece: Piece
    is_whole: bool = False  # `piece` holds the ends of all logs too


@dataclass(slots=True)
class Continued:
    """`groups`: (target, group), each run's logs together; `attempts`: path -> number of the start that wrote it."""

    groups: list[tuple[str, Group]]
    attempts: dict[str, int] = field(default_factory=dict)


class Continuations:
    """Finds such logs. What was read is kept: a directory is looked at again and again."""

    def __init__(self) -> None:
        self._heads: dict[tuple[str, int], Piece] = {}
        self._tails: dict[tuple[str, int, int, int], Piece] = {}
        self._blank: set[tuple[str, int, int, int]] = set()  # logs that show no step as they are

    def join(self, groups: Sequence[tuple[str, Group]], cwd: Path) -> Continued:
        """`groups` with those that one run wrote as one, where its first log stood. Raises nothing."""
        alike: dict[tuple[str, str], list[int]] = {}
        for place, (_, each) in enumerate(groups):
            if (log := _log_of(each)) is not None:
                folder, name = os.path.split(log.path)
                alike.setdefault((folder, re.sub(r"\d+", "#", name)), []).append(place)
        out = Continued(list(groups))
        gone: set[int] = set()
        for (_, shape), places in alike.items():
            if len(places) < 2 or "#" not in shape:
                continue
            for chain in self._chains([groups[place][1] for place in places], cwd):
                if len(chain.groups) < 2:
                    continue
                own = [place for place in places if any(groups[place][1] is each for each in chain.groups)]
                out.groups[own[0]] = (groups[own[0]][0], _whole(chain, out.attempts))
                gone |= set(own[1:])
        out.groups = [each for place, each in enumerate(out.groups) if place not in gone]
        return out

    def _chains(self, groups: Sequence[Group], cwd: Path) -> list[_Chain]:
        chains: list[_Chain] = []
        for each in sorted(groups, key=_numbers)[-_MOST_LOGS:]:
            log = _log_of(each)
            assert log is not None
            path = str(cwd / log.path)
            head = self._head(path)
            if head is None:
                continue
            found = [chain for chain in chains if self._goes_on(chain, head)]
            if len(found) == 1:
                chain = found[0]
                chain.groups.append(each)
                chain.paths.append(path)
                chain.piece, chain.is_whole = _both(chain.piece, head), False
            else:
                chains.append(_Chain([each], [path], head))
        return chains

    def _goes_on(self, chain: _Chain, head: Piece) -> bool:
        """Whether a log that begins as `head` goes on with the run of `chain`."""
        step = float(head.steps[0])
        if step <= chain.piece.steps[0] or _contradict(chain.piece, head):
            return False
        if not chain.is_whole:
            for path in chain.paths:
                if (tail := self._tail(path)) is not None:
                    chain.piece = _both(chain.piece, tail)
            chain.is_whole = True
        steps, losses = chain.piece.steps, chain.piece.losses
        first, last = float(steps[0]), float(steps.max())
        widths = np.diff(np.unique(steps))
        wide = float(np.median(widths)) if len(widths) else 1.0
        if not first + _BEGINNING * (last - first) < step <= last + _GAP * wide:
            return False
        _, mine, its = np.intersect1d(steps, head.steps, return_indices=True)
        if len(mine):
            return bool(np.median(_differs(losses[mine], head.losses[its])) <= _AGREES)
        near = losses[np.argsort(np.abs(steps - step))[:8]]
        return bool(_differs(np.median(near), np.median(head.losses[:8])) <= _NEARLY)

    def _head(self, path: str) -> Piece | None:
        """The first records of a log; None when it shows none."""
        try:
            seen = os.stat(path)
            known = self._heads.get((path, seen.st_ino))
            if known is not None or _state(path, seen) in self._blank:
                return known
            fd, status = open_regular(path)
        except (NotRegular, OSError):
            return None
        piece = None
        try:
            for size in _PIECES_BYTES:
                data = os.pread(fd, size, 0)
                piece = _piece(data, path)
                if piece is not None:
                    self._heads[path, status.st_ino] = piece
                if piece is not None or len(data) < size:
                    break
            if piece is None:
                self._blank.add(_state(path, status))
            return piece
        except OSError:
            return None
        finally:
            close(fd)

    def _tail(self, path: str) -> Piece | None:
        """The last records of a log as it is now; None when it shows none."""
        try:
            known = self._tails.get(_state(path, os.stat(path)))
            if known is not None:
                return known
            fd, status = open_regular(path)
        except (NotRegular, OSError):
            return None
        try:
            at = max(status.st_size - _TAIL_BYTES, 0)
            data = os.pread(fd, _TAIL_BYTES, at)
            piece = _piece(data[data.find(b"\n") + 1 :] if at else data, path)
            if piece is not None:
                self._tails[_state(path, status)] = piece
            return piece
        except OSError:
            return None
        finally:
            close(fd)


def _state(path: str, status: os.stat_result) -> tuple[str, int, int, int]:
    return path, status.st_ino, status.st_size, status.st_mtime_ns


def _piece(data: bytes, path: str) -> Piece | None:
    """The records in `data`, whole lines of which are read; None without any."""
    ingest = Ingest(path, registry.detect, LogPane(path, 1))
    parsed = Parsed()
    parsed.add(ingest.feed(data[: data.rfind(b"\n") + 1], is_at_end=True))
    parsed.add(ingest.finish(is_final=True))
    steps, losses = [], []
    for block in parsed.blocks:
        for key, column in block.columns.items():
            if is_loss_key(key):
                known = np.isfinite(column) & np.isfinite(block.steps)
                steps.append(block.steps[known])
                losses.append(column[known])
                break
    if not sum(map(len, steps)):
        return None
    return Piece(np.concatenate(steps), np.concatenate(losses), {fact.key: fact.value for fact in parsed.facts})


def _both(one: Piece, other: Piece) -> Piece:
    """Records of two pieces, those of `other` last."""
    return Piece(
        np.concatenate((one.steps, other.steps)),
        np.concatenate((one.losses, other.losses)),
        {**other.facts, **one.facts},
    )


def _contradict(one: Piece, other: Piece) -> bool:
    return any(key in one.facts and key in other.facts and one.facts[key] != other.facts[key] for key in _FIXED)


def _differs(a: object, b: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    mine, its = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.abs(mine - its) / np.maximum(np.maximum(np.abs(mine), np.abs(its)), 1e-9)


def _log_of(each: Group) -> Found | None:
    """The log that tells what the run did; None where there are several, or files of ranks."""
    logs = [found for found in each.files if found.look.role == "stdout"]
    others = any(found.look.role in ("rank", "metrics") for found in each.files)
    return logs[0] if len(logs) == 1 and not others else None


def _numbers(each: Group) -> tuple[int, ...]:
    log = _log_of(each)
    return tuple(map(int, re.findall(r"\d+", os.path.basename(log.path)))) if log is not None else ()


def _whole(chain: _Chain, attempts: dict[str, int]) -> Group:
    """One run of all logs of a chain, called by the newest of them."""
    files: dict[str, Found] = {}
    for number, each in enumerate(chain.groups):
        for found in each.files:
            files.setdefault(found.path, found)
            if found.look.role != "config":
                attempts[found.path] = number
    newest = chain.groups[-1]
    return Group(newest.path, list(files.values()), newest.key, newest.folder)
