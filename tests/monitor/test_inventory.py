"""The 39 rows: what a log carries, what follows from it, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from tests.monitor.logs import Line, engine, parsed, train
from trainmon.monitor.assemble import assemble
from trainmon.monitor.inventory import Row, rows
from trainmon.monitor.job.judging import Pulse


def by_signal(lines: Sequence[Line]) -> dict[str, Row]:
    run = engine(detectors=None)
    run.feed("log", parsed(lines))
    run.settle()
    return {row.signal: row for row in rows(assemble(run, (), (), Pulse(None, None, False), live=False))}


def test_a_count_that_follows_is_not_missing_while_there_is_nothing_to_count() -> None:
    both = by_signal([train(step, 2.0, grad_norm=1.0) for step in range(1, 50)])["spike.co_count"]
    assert (both.status, both.rule) == ("derivable", "D5")
    alone = by_signal([train(step, 2.0) for step in range(1, 50)])["spike.co_count"]
    assert (alone.status, alone.rule) == ("missing", None)
    assert "gradient norm" in alone.to_get_it
