"""Blocks of a series: many values at once are cut as one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.detectors import shift_track
from trainmon.monitor.detectors.common import Found
from trainmon.monitor.detectors.shift_track import Block, Blocks, BlockSeries
from trainmon.monitor.frame import Frame, SignalKey

LOSS = SignalKey("loss.train")


class Kept:
    """Keeps the blocks, some of them passed over."""

    def __init__(self) -> None:
        self.closed: list[tuple[Block, int]] = []
        self.first_row = 0

    def on_block(self, block: Block, row: int, found: Found) -> None:
        del found
        self.closed.append((block, row + self.first_row))

    def pass_over(self, blocks: Blocks, start: int) -> int:
        end = start + (len(blocks) - start) // 2
        passed = zip(blocks.tail(start, end, end - start), map(blocks.row, range(start, end)), strict=True)
        self.closed += [(block, row + self.first_row) for block, row in passed]
        return end

    def on_restart(self, carries_on: bool, step: float) -> None:
        raise AssertionError((carries_on, step))


def blocks(
    values: list[float], steps: list[float], size: tuple[float, int], cuts: list[int]
) -> list[tuple[Block, int]]:
    kept = Kept()
    series = BlockSeries(LOSS, size[0], size[1], kept)
    for begin, end in zip([0, *cuts], [*cuts, len(values)], strict=True):
        kept.first_row = begin
        where = slice(begin, end)
        column = np.array(values[where])
        at = np.array(steps[where])
        series.feed(Frame(0, "log", at, at, np.arange(begin, end), {LOSS: column}), [])
    return kept.closed


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    width=st.sampled_from([1.0, 10.0, 0.1]),
    size=st.tuples(st.sampled_from([1.0, 25.0, 300.0]), st.sampled_from([1, 5, 25])),
    holes=st.booleans(),
    cuts=st.lists(st.integers(1, 799), max_size=4, unique=True),
)
def test_many_values_at_once_are_cut_as_one_by_one(
    seed: int, width: float, size: tuple[float, int], holes: bool, cuts: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 3.0, 800)
    steps = width * np.arange(800)
    if holes:
        values[rng.integers(0, 800, 5)] = rng.choice([np.nan, 0.0, np.inf], 5)
        steps[400:] += 1000
        steps[600] = steps[601]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shift_track, "_WORTH", 1 << 30)
        alone = blocks(values.tolist(), steps.tolist(), size, [])
    assert repr(blocks(values.tolist(), steps.tolist(), size, sorted(cuts))) == repr(alone)
