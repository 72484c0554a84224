"""The queue between readers and the engine, bounded by what its items hold: many small ones or a few large ones."""

from __future__ import annotations

import queue
from collections import deque
from typing import TYPE_CHECKING

from trainmon.tails.record import Parsed

if TYPE_CHECKING:
    from trainmon.tails.reader import IntakeItem

_SHARES = 16  # the largest items count as so many: a few of them fill the queue
_CELLS_A_SHARE = 4096


class ItemQueue(queue.Queue["IntakeItem | None"]):
    """At most `maxsize` shares: one an item, and one more for every `_CELLS_A_SHARE` values in it."""

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 - `queue.Queue` calls it so
        self._items: deque[tuple[IntakeItem | None, int]] = deque()
        self._shares = 0

    def _qsize(self) -> int:
        return self._shares

    def _put(self, item: IntakeItem | None) -> None:
        shares = 1 if item is None else 1 + min(_SHARES, cells_of(item.update.parsed) // _CELLS_A_SHARE)
        self._items.append((item, shares))
        self._shares += shares

    def _get(self) -> IntakeItem | None:
        item, shares = self._items.popleft()
        self._shares -= shares
        return item


def cells_of(parsed: Parsed) -> int:
    """How many values its blocks hold, steps, times, offsets and line numbers among them."""
    return sum(len(block) * (4 + len(block.columns)) for block in parsed.blocks)
