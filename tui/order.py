"""The orders in which the fleet list can be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache

from trainmon.tails.lazy_pattern import lazy
from trainmon.tui.row import ALIVE, Row

_DIGITS = lazy(r"(\d{1,18})")
_Key = Callable[[Row], tuple[object, ...]]


@lru_cache(4096)
def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that puts run-9 before run-10.

    >>> sorted(["run-10", "run-9", "Run-1"], key=natural)
    ['Run-1', 'run-9', 'run-10']
    """
    parts = _DIGITS.split(text.lower())
    return tuple((0, int(part), "") if index % 2 else (1, 0, part) for index, part in enumerate(parts))


def _largest(value: float) -> tuple[object, ...]:
    """Largest first, NaN last."""
    return (True, 0.0) if math.isnan(value) else (False, -value)


def _smallest(value: float) -> tuple[object, ...]:
    return (True, 0.0) if math.isnan(value) else (False, value)


ORDERS: dict[str, _Key] = {
    "trouble": lambda row: (-row.trouble, row.run.state not in ALIVE),  # what still burns money first
    "name": lambda _row: (),
    "step": lambda row: _largest(row.step),
    "loss": lambda row: _smallest(row.loss),
    "spike score": lambda row: _largest(row.z),
    "tokens/s": lambda row: _largest(row.tokens_per_second),
    "memory": lambda row: _largest(row.memory),
    "age": lambda row: _smallest(row.age_s),
}


def ordered(rows: Iterable[Row], order: str) -> list[Row]:
    """`rows` by one of `ORDERS`, equal ones by name."""
    key = ORDERS[order]
    return sorted(rows, key=lambda row: (*key(row), natural(row.run.name), row.id))


def next_order(order: str) -> str:
    """The one after `order`, round and round."""
    names = list(ORDERS)
    return names[(names.index(order) + 1) % len(names)]
