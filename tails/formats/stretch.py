"""Lines of known outlines or shapes that follow each other, read together: as `Sink.emit` reads them one by one."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.formats.digits import read_numbers
from trainmon.tails.formats.places import Places
from trainmon.tails.formats.raw_values import RawValues, RowValues
from trainmon.tails.prefix import Prefix
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

# How it is read, the line, its offset and number; its numbers, where they were looked at.
Known = tuple[Places | AnyWidth, bytes, int, int, list[float] | None]
_NAN = float("nan")
_FEW = 32
_SLOTS = 4  # step, total, epoch, epochs
T = TypeVar("T")


@dataclass(slots=True)
class Stretch:
    """(n,) lines: their steps, totals, epochs, how many of these in all, and times (NaN without); prefixes, which hold
    no time; and metrics. A step is its place in the epoch where that is told."""

    steps: list[float]
    totals: list[float]
    epochs: list[float]
    all_epochs: list[float]
    times: list[float]
    prefixes: list[Prefix]
    values: list[RawValues] | list[RowValues] | list[RawValues | RowValues]


def stretch_of(lines: list[Known]) -> Stretch | None:
    """`lines` read, all of which have `bulk`; None when one of them must be read alone."""
    groups = _groups(lines)
    if len(groups) == 1:
        return _read(groups[0][0], lines)
    parts: list[Stretch] = []
    places: list[int] = []
    for known, indices in groups:
        part = _read(known, [lines[index] for index in indices])
        if part is None:
            return None
        parts.append(part)
        places += indices
    order = np.argsort(places).tolist()
    return Stretch(
        _ordered([one for part in parts for one in part.steps], order),
        _ordered([one for part in parts for one in part.totals], order),
        _ordered([one for part in parts for one in part.epochs], order),
        _ordered([one for part in parts for one in part.all_epochs], order),
        _ordered([one for part in parts for one in part.times], order),
        _ordered([one for part in parts for one in part.prefixes], order),
        _ordered([one for part in parts for one in part.values], order),
    )


def _groups(lines: list[Known]) -> list[tuple[Places | AnyWidth, list[int]]]:
    """Lines that are read by the same rule; outlines of few lines are read by their common shape."""
    groups: dict[int, tuple[Places | AnyWidth, list[int]]] = {}
    newest: Places | AnyWidth | None = None
    places: list[int] = []
    for index, line in enumerate(lines):
        known = line[0]
        if known is not newest:
            newest = known
            places = groups.setdefault(id(known), (known, []))[1]
        places.append(index)
    if len(groups) > 1:
        for known, indices in list(groups.values()):
            if isinstance(known, Places) and known.loose is not None and len(indices) < _FEW:
                del groups[id(known)]
                groups.setdefault(id(known.loose), (known.loose, []))[1].extend(indices)
    return list(groups.values())


def _ordered(values: list[T], order: list[int]) -> list[T]:
    return [values[index] for index in order]


def _read(known: Places | AnyWidth, lines: list[Known]) -> Stretch | None:
    bulk = known.bulk
    assert bulk is not None
    raws = [line[1] for line in lines]
    heads: FloatArray
    if isinstance(known, Places):
        heads = read_numbers(bulk.heads, raws)
        values: list[RawValues] | list[RowValues] = [RawValues(known.columns, raw) for raw in raws]
    else:
        rows = [known.numbers(line[1]) if line[4] is None else line[4] for line in lines]
        if None in rows:
            return None
        numbers = np.array(rows, np.float64)
        heads = numbers[:, known.heads]
        if not np.isfinite(heads).all():
            return None
        matrix = numbers[:, known.fields]
        values = [RowValues(known.template.keys, matrix, row) for row in range(len(raws))]
    begun = bulk.prefixes(raws)
    if begun is None:
        return None
    told = [[_NAN] * len(raws)] * _SLOTS
    for column, slot in enumerate(bulk.slots):
        told[slot] = heads[:, column].tolist()
    steps, totals, epochs, all_epochs = told
    return Stretch(steps, totals, epochs, all_epochs, begun[1], begun[0], values)
