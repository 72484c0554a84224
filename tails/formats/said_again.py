"""Whether two records say the same: most of a log of many ranks is one rank's words, said again by the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.formats.builder import Rows
from trainmon.tails.formats.raw_values import RawValues, RowValues


def is_same(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> bool:
    """Whether two records hold the same values under the same keys in the same order; NaN is the same as NaN.

    >>> is_same({"loss": 2.5, "lr": float("nan")}, {"loss": 2.5, "lr": float("nan")})
    True
    """
    if type(one) is RawValues and type(other) is RawValues and one.columns is other.columns:
        a, b = one.line, other.line
        if a[one.columns.extent] == b[one.columns.extent]:
            return True
        # Not written alike: the first number that differs settles it.
        for span in one.columns.spans:
            if a[span] != b[span] and repr(float(a[span])) != repr(float(b[span])):
                return False
        return True
    if isinstance(one, RawValues | RowValues) and isinstance(other, RawValues | RowValues) and one.names is other.names:
        return all(a == b != 0.0 or repr(a) == repr(b) for a, b in zip(one.numbers(), other.numbers(), strict=True))
    return repr(dict(one)) == repr(dict(other))


def is_fresh(rows: Rows, before: tuple[float, Mapping[str, float | None]] | None) -> NDArray[np.bool_]:
    """(n,) whether each row says something else than the one before it; the first comes after `before`, a step and its
    values.

    >>> at, values = np.array([1, 2, 3]), np.array([[2.5], [2.5], [2.5]])
    >>> is_fresh(Rows(np.array([1.0, 2.0, 2.0]), at, at, at, ("loss",), values), (1.0, {"loss": 2.5})).tolist()
    [False, True, False]
    """
    steps, values = rows.steps, rows.values
    fresh = np.ones(len(steps), np.bool_)
    again = np.flatnonzero(steps[1:] == steps[:-1]) + 1
    if len(again):
        bits = np.ascontiguousarray(values).view(np.int64)  # there is no NaN among them
        fresh[again] = (bits[again] != bits[again - 1]).any(axis=1)
    if before is not None and before[0] == steps[0]:
        fresh[0] = not is_same(before[1], RowValues(rows.names, values, 0))
    return fresh
