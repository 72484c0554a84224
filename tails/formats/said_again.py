"""Whether two records say the same: most of a log of many ranks is one rank's words, said again by the others."""

from __future__ import annotations

from collections.abc import Mapping

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
