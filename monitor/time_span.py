"""Lengths of time as people write them on a command line and in settings."""

from __future__ import annotations

import re
from typing import Final

SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds(text: str) -> float:
    """A length of time such as ``90s``, ``10m``, ``1.5h``, ``2d``; a bare number is seconds.

    Raises ValueError with a line that says what is understood.

    >>> seconds("10m"), seconds("1.5h"), seconds("45")
    (600.0, 5400.0, 45.0)
    """
    found = SPAN.fullmatch(text.strip().lower())
    if found:
        return float(found[1]) * _SECONDS[found[2]]
    if re.fullmatch(r"\d+(\.\d+)?", text.strip()):
        return float(text)
    raise ValueError(f"{text!r} is no length of time; write 90s, 10m, 2h or 3d")
