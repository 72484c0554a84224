"""Where charts go in a given room: as many as can be read, each as large as it can be."""

from __future__ import annotations

import math
from typing import NamedTuple

MIN_WIDTH = 30
_BEST_RATIO = 4.5  # cells across per cell down; a cell is about twice as high as wide


class Place(NamedTuple):
    """In cells, from the top left."""

    x: int
    y: int
    width: int
    height: int


def arrange(count: int, width: int, height: int, min_height: int = 6) -> list[Place]:
    """Places for `count` charts, or for fewer where `count` do not fit; at least one while there is any room.

    >>> arrange(1, 46, 12)
    [Place(x=0, y=0, width=46, height=12)]
    >>> len(arrange(9, 120, 36)), len(arrange(9, 46, 12))
    (9, 2)
    """
    if count < 1 or width < 1 or height < 1:
        return []
    most_across, most_down = max(1, width // MIN_WIDTH), max(1, height // min_height)
    count = min(count, most_across * most_down)
    best = min(
        (across for across in range(1, most_across + 1) if math.ceil(count / across) <= most_down),
        key=lambda across: abs(math.log(width / across / (height / math.ceil(count / across)) / _BEST_RATIO)),
    )
    down = math.ceil(count / best)
    places: list[Place] = []
    for row in range(down):
        here = min(best, count - row * best)
        top, bottom = row * height // down, (row + 1) * height // down
        for column in range(here):
            left, right = column * width // here, (column + 1) * width // here
            gap = 1 if column < here - 1 else 0
            places.append(Place(left, top, right - left - gap, bottom - top))
    return places
