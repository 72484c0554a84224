"""Tables in long form: the rows' values under the names that the rows give them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from trainmon.tails.formats.csv_header import Header
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.formats.struct_plan import Columns, Marks
from trainmon.tails.record import FloatArray, MarkArray
from trainmon.tails.steps import step_rank

_SUBSET = re.compile(r"""["']subset["']\s*:\s*["'](\w{1,60})["']""")  # Aim's context of a metric

_HELD_OUT = {"validate": "val", "evaluate": "eval"}  # Comet's contexts are called by what is done


def places(header: Header) -> tuple[int, ...]:
    """The columns of a long table that say where a row stands: its step and time."""
    return tuple(
        index
        for index in header.numbers
        if step_rank(header.names[index]) is not None
        or index in header.texts
        or stamp_order(header.names[index]) is not None
    )


def pivot(
    kinds: Sequence[str | None] | None,
    names: Sequence[str | None],
    values: FloatArray,
    mark: MarkArray | None,
    suffixes: Sequence[str] | None = None,
) -> tuple[Columns, Marks]:
    """Puts each of n values under the name that its row gives it; rows without a name are left out.

    `kinds`: what stands before a name, ``kind/name``; `mark`: that of the values, None where all are numbers or not
    logged; `suffixes`: what goes behind a name.

    >>> columns, _ = pivot(None, ["loss", "lr", "loss"], np.array([2.5, 0.1, 2.25]), None)
    >>> columns["loss"].tolist(), columns["lr"].tolist()
    ([2.5, nan, 2.25], [nan, 0.1, nan])
    """
    columns: Columns = {}
    marks: Marks = {}
    rows: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        if not name:
            continue
        kind = kinds[index] if kinds is not None else None
        if kind and (match := _SUBSET.search(kind)) is not None:
            kind = match[1]
        elif kind and kind[0] == "{":  # a context that tells no subset
            kind = ""
        kind = _HELD_OUT.get(kind, kind) if kind else kind
        key = (f"{kind}/{name}" if kind else name) + (suffixes[index] if suffixes is not None else "")
        rows.setdefault(key, []).append(index)
    for key, at in rows.items():
        column = np.full(len(values), math.nan)
        column[at] = values[at]
        columns[key] = column
        if mark is not None and (mark[at] > 1).any():
            marks[key] = np.zeros(len(values), np.uint8)
            marks[key][at] = mark[at]
    return columns, marks
