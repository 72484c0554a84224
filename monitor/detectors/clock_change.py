"""The hour that clocks skip when summer time begins, in time stamps that do not say their zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_HOUR_S: Final = 3600.0
_DAY_S: Final = 86400.0
_SUNDAY: Final = 6
# Month -> days of it, on whose Sunday clocks go forward: North America and Europe, New Zealand, Australia.
_SUNDAYS: Final = {3: (*range(8, 15), *range(25, 32)), 9: tuple(range(24, 31)), 10: tuple(range(1, 8))}
_SKIPPED: Final = (1, 2, 3)  # the hours of the day that are left out: in Britain, in most countries, in eastern Europe


def skipped_s(before: float, after: float) -> float:
    """Seconds of the time from `before` to `after` (no zone is known) that clocks may have skipped: 3600 or 0.

    >>> at = datetime(2024, 3, 31, 1, 59, tzinfo=UTC).timestamp()
    >>> skipped_s(at, at + 3660.0), skipped_s(at, at + 1200.0), skipped_s(at + 86400.0, at + 86400.0 + 3660.0)
    (3600.0, 0.0, 0.0)
    """
    if after - before < _HOUR_S:
        return 0.0
    midnight = before - before % _DAY_S
    try:
        day = datetime.fromtimestamp(midnight, UTC)
    except (OverflowError, ValueError, OSError):
        return 0.0  # no date at all
    if day.weekday() != _SUNDAY or day.day not in _SUNDAYS.get(day.month, ()):
        return 0.0
    begins = (midnight + hour * _HOUR_S for hour in _SKIPPED)
    return _HOUR_S if any(before < start and after >= start + _HOUR_S for start in begins) else 0.0
