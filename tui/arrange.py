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


def arrange(count: int, width: int, height: int, min_height: int = 6, across: int = 0) -> list[Place]:
    """Places for `count` charts, or for fewer where `count` do not fit; at least one while there is any room.

    `across`: how many are to stand beside each other, where there is room for so many.

    >>> arrange(1, 46, 12)
    [Place(x=0, y=0, width=46, height=12)]
    >>> len(arrange(9, 120, 36)), len(arrange(9, 46, 12))
    (9, 2)
    >>> [place.x for place in arrange(6, 160, 40, across=3)]
    [0, 53, 106, 0, 53, 106]
    """
    if count < 1 or width < 1 or height < 1:
        return []
    most_across, most_down = max(1, width // MIN_WIDTH), max(1, height // min_height)
    count = min(count, most_across * most_down)
    if 0 < across <= most_across:
        count = min(count, across * most_down)
        choice: list[int] = [across]
    else:
        choice = [columns for columns in range(1, most_across + 1) if math.ceil(count / columns) <= most_down]
    best = min(
        choice,
        key=lambda columns: abs(math.log(width / columns / (height / math.ceil(count / columns)) / _BEST_RATIO)),
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
