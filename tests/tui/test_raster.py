from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trainmon.tui.curve import Curve, draw_curve, segments, spark_text, value_range
from trainmon.tui.raster import (
    BRAILLE,
    PLAIN,
    Grid,
    Spans,
    cells,
    column_of,
    column_spans,
    curve_dots,
    join,
    level_dots,
    text_of,
)
from trainmon.tui.raster import row_of as dot_row

NAN = float("nan")


def curve(values: list[float], attempts: list[int] | None = None, x: list[float] | None = None) -> Curve:
    y = np.array(values)
    places = np.arange(float(len(y))) if x is None else np.array(x)
    good = np.isfinite(y)
    numbered = np.zeros(len(y), np.int64) if attempts is None else np.array(attempts)
    return Curve(places[good], y[good], y[good], y[good], numbered[good], places[~good])


def rows_of(dots: np.ndarray, grid: Grid) -> list[str]:
    """The characters of one layer, row by row."""
    codes, _ = cells([dots], grid)
    return [text_of(row) for row in codes]


def drawn(values: list[float], across: int, down: int) -> list[str]:
    """Braille of one curve over its whole range."""
    one = curve(values)
    assert one.range is not None
    spans = draw_curve(one, *one.range, across * 2).merged()
    dots = curve_dots(spans, float(np.nanmin(spans.low)), float(np.nanmax(spans.high)), down * 4)
    return rows_of(dots, BRAILLE)


def test_a_rising_line() -> None:
    assert drawn([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 4, 2) == ["  ⡠⠊", "⡠⠊  "]


def test_a_spike_of_one_value_in_ten_thousand_is_seen() -> None:
    values = np.full(10_000, 1.0)
    values[5_000] = 9.0
    assert drawn(values.tolist(), 10, 4) == ["     ⡇    ", "     ⡇    ", "     ⡇    ", "⣀⣀⣀⣀⣀⣇⣀⣀⣀⣀"]


def test_braille_bits() -> None:
    full = np.ones((4, 2), dtype=np.bool_)
    assert rows_of(full, BRAILLE) == ["⣿"]
    assert cells([full], BRAILLE)[1].tolist() == [[0]]
    for row, column, character in ((0, 0, "⠁"), (1, 0, "⠂"), (2, 0, "⠄"), (3, 0, "⡀"), (0, 1, "⠈"), (3, 1, "⢀")):
        dots = np.zeros((4, 2), dtype=np.bool_)
        dots[row, column] = True
        assert rows_of(dots, BRAILLE) == [character]


def test_plain_characters() -> None:
    dots = np.array([[1, 0, 1, 0], [0, 1, 1, 0]], dtype=np.bool_)
    assert rows_of(dots, PLAIN) == ["'.: "]


def test_the_last_layer_owns_a_cell() -> None:
    under, over = np.ones((4, 4), dtype=np.bool_), np.zeros((4, 4), dtype=np.bool_)
    over[0, 0] = True
    assert cells([under, over], BRAILLE)[1].tolist() == [[1, 0]]


def test_a_dashed_level() -> None:
    assert rows_of(level_dots(1.0, 0.0, 2.0, 8, 8), BRAILLE) == ["    ", "⠁ ⠁ "]
    assert not level_dots(3.0, 0.0, 2.0, 8, 8).any()


def test_a_gap_is_bridged_but_not_across_what_was_no_number() -> None:
    x = np.array([0.0, 9.0])
    spans = column_spans(x, x, x, 0, 9, 10)
    assert np.isfinite(join(spans).low).all()
    breaks = np.zeros(10, dtype=np.bool_)
    breaks[4] = True
    assert np.isfinite(join(spans, breaks).low).sum() == 2


def test_older_attempts_are_kept_apart() -> None:
    one = curve([5.0, 4.0, 3.0, 2.0, 3.9, 2.9, 1.9], [0, 0, 0, 0, 1, 1, 1], [0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    assert segments(one) == [(0, 4, 1.0), (4, 7, np.inf)]
    parts = draw_curve(one, 0.0, 3.0, 4)
    assert parts.merged().low.tolist() == [5.0, 3.9, 2.9, 1.9]
    assert [np.nanmax(part.high) for part in parts.older] == [4.0]


def test_a_step_that_goes_back_without_an_attempt_begins_a_segment() -> None:
    assert len(segments(curve([1.0, 2.0, 3.0], x=[0.0, 5.0, 2.0]))) == 2


def test_many_attempts_are_still_drawn() -> None:
    x = [float(i % 10) for i in range(5000)]
    one = curve([1.0 + value for value in x], [i // 10 for i in range(5000)], x)
    assert np.isfinite(draw_curve(one, 0, 9, 20).merged(older=True).low).all()


def test_the_first_descent_does_not_set_the_axis() -> None:
    y = 2 + 9 * np.exp(-np.arange(200) / 5.0)
    spans = Spans(y, y)
    bottom, top, true_top = value_range(spans, clip_start=True) or (0, 0, 0)
    assert bottom == pytest.approx(2.0)
    assert true_top == pytest.approx(11.0)
    assert top < 3
    later = y.copy()
    later[150] = 8.0
    clipped = value_range(Spans(later, later), clip_start=True)
    assert clipped is not None
    assert clipped[1] >= 8.0, "only the beginning may be cut, never a spike"


def test_spark() -> None:
    assert spark_text(curve([1.0, 2.0, 3.0, NAN]), 4, "▁▂▃▄▅▆▇█", "✗") == "▁▅█✗"
    assert spark_text(curve([]), 4, "▁█", "✗") == ""
    assert spark_text(curve([2.0, 2.0]), 2, "▁▂▃▄▅", "✗") == "▃▃"
    assert spark_text(curve([NAN, NAN]), 2, "▁█", "✗") == "✗✗"


@given(
    arrays(
        np.float64, st.integers(0, 200), elements=st.floats(-1e300, 1e300) | st.sampled_from([NAN, np.inf, -np.inf])
    ),
    st.integers(1, 80),
)
def test_spans_hold_every_finite_value(values: np.ndarray, columns: int) -> None:
    x = np.arange(float(len(values)))
    stop = float(max(len(values) - 1, 1))
    spans = column_spans(x, values, values, 0.0, stop, columns)
    finite = values[np.isfinite(values)]
    if not finite.size:
        assert np.isnan(spans.low).all()
        return
    assert np.nanmin(spans.low) == finite.min()
    assert np.nanmax(spans.high) == finite.max()
    places = column_of(x, 0.0, stop, columns)
    for place, value in zip(places, values, strict=True):
        if np.isfinite(value):
            assert spans.low[place] <= value <= spans.high[place]


@given(
    arrays(np.float64, st.integers(1, 60), elements=st.floats(-1e300, 1e300) | st.just(NAN)),
    st.integers(1, 40),
    st.floats(-1e300, 1e300),
    st.floats(-1e300, 1e300),
)
def test_dots_never_fail_and_touch(values: np.ndarray, rows: int, a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        dots = curve_dots(Spans(values, values), min(a, b), max(a, b), rows)
    assert dots.shape == (rows, len(values))
    assert (dots.any(axis=0) == np.isfinite(values)).all()
    for left, right in zip(range(len(values)), range(1, len(values)), strict=False):
        if np.isfinite(values[left]) and np.isfinite(values[right]):
            one, two = np.flatnonzero(dots[:, left]), np.flatnonzero(dots[:, right])
            assert one.min() - 1 <= two.max()
            assert two.min() - 1 <= one.max()


def test_values_outside_are_held_at_the_edge() -> None:
    assert dot_row(np.array([5.0, -5.0, np.inf, -np.inf]), 0, 1, 4).tolist() == [0, 3, 0, 3]
