"""Numbers as trainers print them: ``24,995``, ``1.08e+01``, ``-.0453``, ``nan``, ``None``, ``1.2k``."""

from __future__ import annotations

import math
import re
from functools import lru_cache

MICROSOFT = r"[-+]?1\.#(?:[QS]NAN|IND|INF)\d{0,30}"  # how its old run-time writes NaN and infinity: 1.#QNAN, -1.#IND00
# One number; the caller adds what must stand around it. Alternatives are ordered by how often they are met.
NUMBER = (
    MICROSOFT + r"|[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d|,\S)|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
    r"|[-+]?(?:[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF)|None|null|[nN]/[aA]|NA"
)
MULTIPLIERS = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_EXPONENTS = {"k": "e3", "K": "e3", "M": "e6", "B": "e9", "G": "e9", "T": "e12"}


_NO_NUMBER = re.compile(MICROSOFT + r"|[-+]?nan\([a-z0-9_]{0,30}\)", re.IGNORECASE)


def c_runtime_number(text: str) -> float | None:
    """NaN or infinity as C run-times write them and Python does not read them; None for anything else.

    >>> c_runtime_number("-1.#INF00"), c_runtime_number("-nan(ind)"), c_runtime_number("nan")
    (-inf, nan, None)
    """
    if _NO_NUMBER.fullmatch(text) is None:
        return None
    return float(text[0].replace("1", "") + "inf") if "INF" in text.upper() else math.nan


def to_number(text: str) -> float | None:
    """The value of `text`, None for a logged null. Raises ValueError for anything else.

    >>> to_number("24,995"), to_number("-.0453"), to_number("1.082584e+01"), to_number("None")
    (24995.0, -0.0453, 10.82584, None)
    >>> to_number("-1.#INF00"), to_number("1.#QNAN")
    (-inf, nan)
    """
    try:
        return float(text)
    except ValueError:
        if (odd := c_runtime_number(text)) is not None:
            return odd
        if text in ("None", "null"):
            return None
        if "_" in text:
            raise
        return float(text.replace(",", ""))


def is_absent(text: str) -> bool:
    """Whether `text` says that there is no value (``N/A``), which is not the same as a logged null."""
    return text in ("N/A", "n/a", "N/a", "n/A", "NA", "-", "--")


def with_multiplier(text: str) -> float:
    """A count such as ``124.5M`` or ``24,627,840``; NaN when it is none.

    >>> with_multiplier("124.5M"), with_multiplier("24,627,840"), with_multiplier("2.01B")
    (124500000.0, 24627840.0, 2010000000.0)
    """
    factor = MULTIPLIERS.get(text[-1:], 1.0)
    try:
        if factor != 1.0 and text[-2:-1].isdigit() and "e" not in text and "E" not in text:
            return float(text[:-1].replace(",", "") + _EXPONENTS[text[-1]])  # 2.01e9 as it is written, not 2.01 * 1e9
        value = to_number(text[:-1] if factor != 1.0 else text)
    except ValueError:
        return math.nan
    return math.nan if value is None else value * factor


_CLOCK = re.compile(r"(?:(\d{1,9}) days?, )?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d+)?)")  # longer is no time


@lru_cache(256)
def clock_seconds(text: str) -> float | None:
    """Seconds of an elapsed time ``[D days, ][H:]MM:SS``; None when it is none.

    >>> clock_seconds("1:31:40"), clock_seconds("?")
    (5500.0, None)
    """
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * 86400 + int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
