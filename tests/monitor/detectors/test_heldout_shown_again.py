"""A progress bar shows its newest evaluation on: each counts once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.monitor.detectors.harness import cut, result, run
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.frame import Frame, SignalKey

NLL, LOSS, EPOCH = SignalKey("eval.nll"), SignalKey("loss.train"), SignalKey("progress.epoch")
PER_EPOCH = 20


def bar(values: list[float], *, with_epoch: bool = True, every: int = 1) -> Frame:
    """A bar that shows one value through each epoch, on every `every`-th of its rows."""
    n = PER_EPOCH * len(values)
    rows = np.arange(n)
    shown = np.where(rows % every == 0, np.repeat(values, PER_EPOCH), np.nan)
    columns = {NLL: shown, LOSS: 3 - 0.001 * rows}
    if with_epoch:
        columns[EPOCH] = np.repeat(np.arange(float(len(values))), PER_EPOCH)
    return Frame(0, "log", rows + 1.0, np.full(n, np.nan), rows + 1, columns)


@pytest.mark.parametrize("with_epoch", [True, False])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_evaluation_that_is_shown_on_counts_once(with_epoch: bool, size: int) -> None:
    frame = bar([np.nan, 3.0, 2.9, 2.8, 2.7, 2.6], with_epoch=with_epoch)
    pieces = cut(frame, range(size, len(frame), size))
    assert result(run(HeldOut, pieces)).what.startswith("5 evaluations, best 2.6 at step 101")


def test_one_bad_evaluation_that_is_shown_on_is_not_three() -> None:
    assert run(HeldOut, [bar([3.0, 2.9, 2.8, 2.7, 3.2])]).episodes == []


def test_the_same_value_in_a_new_epoch_is_a_new_evaluation() -> None:
    assert result(run(HeldOut, [bar([3.0, 2.9, 2.8, 2.7, 2.7])])).what.startswith("5 evaluations")
    [episode] = run(HeldOut, [bar([3.0, 2.7, 3.2, 3.2, 3.2])]).episodes
    assert episode.kind == "held_out"


def test_the_same_value_after_rows_without_one_is_a_new_evaluation() -> None:
    assert result(run(HeldOut, [bar([3.0] * 3, with_epoch=False, every=5)])).what.startswith("12 evaluations")
