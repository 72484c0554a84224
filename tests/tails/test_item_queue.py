from __future__ import annotations

import queue

import numpy as np
import pytest

from trainmon.tails.item_queue import ItemQueue
from trainmon.tails.reader import IntakeItem
from trainmon.tails.record import Block, Parsed
from trainmon.tails.status import FileStatus
from trainmon.tails.tail import TailUpdate


def item(rows: int) -> IntakeItem:
    column = np.zeros(rows)
    whole = np.zeros(rows, np.int64)
    block = Block("log", column, column, whole, whole, {"loss": column})
    status = FileStatus("log", "jsonl", 0, 0, 0, 0, 0, "", "", None)
    return IntakeItem("run", "log", TailUpdate(Parsed(blocks=[block])), status, "log")


def filled(items: ItemQueue, rows: int) -> int:
    """How many items of `rows` fit."""
    count = 0
    while True:
        try:
            items.put_nowait(item(rows))
        except queue.Full:
            return count
        count += 1


@pytest.mark.parametrize(("rows", "least", "most"), [(1, 64, 64), (2000, 20, 40), (100_000, 2, 6)])
def test_it_holds_many_small_items_or_a_few_large_ones(rows: int, least: int, most: int) -> None:
    assert least <= filled(ItemQueue(64), rows) <= most


def test_what_was_put_comes_out_in_order_and_makes_room() -> None:
    items = ItemQueue(64)
    count = filled(items, 50_000)
    items_out = [items.get_nowait() for _ in range(count)]
    assert all(one is not None and len(one.update.parsed.blocks[0]) == 50_000 for one in items_out)
    assert items.empty()
    items.put_nowait(None)
    assert items.get_nowait() is None
    assert filled(items, 50_000) == count


def test_the_largest_item_goes_into_an_empty_queue_however_small() -> None:
    items = ItemQueue(2)
    items.put_nowait(item(1_000_000))
    with pytest.raises(queue.Full):
        items.put_nowait(None)
    assert items.get_nowait() is not None
