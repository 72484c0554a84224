from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.stats.registry import STATISTICS, Entry

finite = st.floats(-100, 100).map(lambda x: round(x, 9))  # within rounding of a grid a value counts as on it
printed = st.integers(-400, 400).map(lambda n: n / 20)  # many ties, as in a log with few digits


@pytest.mark.parametrize("entry", STATISTICS, ids=lambda entry: entry.name)
@settings(max_examples=60, deadline=None)
@given(values=st.one_of(st.lists(finite, min_size=1, max_size=150), st.lists(printed, min_size=1, max_size=150)))
def test_agrees_with_its_batch_oracle_after_every_update(entry: Entry, values: list[float]) -> None:
    statistic = entry.make()
    for n, x in enumerate(values, 1):
        statistic.update(x)
        got, expected = entry.read(statistic), entry.oracle(values[:n])
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-9) or (math.isnan(got) and math.isnan(expected))
