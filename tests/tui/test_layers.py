"""Layers and experts: which series belong together, the map's levels, movers, dead and hot ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui import sample
from tests.tui.driver import running, text_of
from trainmon.tui import keys
from trainmon.tui.experts import layers_of, matrix, odd_ones
from trainmon.tui.glyphs import ASCII
from trainmon.tui.heat import LEVELS, heat_map, layer_rows
from trainmon.tui.layers import families, movers
from trainmon.tui.screens.layers import LayersScreen

STEPS = np.arange(1.0, 4001)


def test_families_of_a_run() -> None:
    found = families(sample.moe())
    assert [(one.title, len(one.layers)) for one in found] == [
        ("update ratio", 12),
        ("tensor RMS", 12),
        ("probe.layers.*.sharpness", 12),
    ]
    assert found[0].layers[9:] == ("9", "10", "11")


def test_the_layer_that_moved_comes_first() -> None:
    first = movers(families(sample.moe())[0])[0]
    assert first.layer == "7"
    assert first.factor == pytest.approx(12, rel=0.3)
    assert first.since == 3100


def test_names_that_only_look_like_layers() -> None:
    run = sample.with_series(
        sample.healthy(), *(sample.view(f"loss_l{n}", STEPS, STEPS) for n in (1, 2)), sample.view("a.b", STEPS, STEPS)
    )
    assert families(run) == ()


def views(values: np.ndarray) -> tuple[sample.SeriesView, ...]:
    steps = np.arange(float(values.shape[1]))
    return tuple(sample.view("update.ratio", steps, row, layer=str(n)) for n, row in enumerate(values))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 30), st.integers(1, 400), st.integers(1, 90), st.integers(1, 40), st.booleans(), st.integers(0, 9)
)
def test_any_map_can_be_drawn(layers: int, n: int, columns: int, rows: int, by_change: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((layers, n)) if seed % 2 else np.exp(rng.standard_normal((layers, n)))
    values[rng.random((layers, n)) < 0.1] = np.nan
    drawn = heat_map(views(values), columns, rows, by_change=by_change)
    if not np.isfinite(values).any():
        assert drawn is None
        return
    assert drawn is not None
    assert drawn.level.shape == (min(layers, rows), columns) == drawn.bad.shape
    assert drawn.level.min() >= -1
    assert drawn.level.max() < LEVELS
    assert [first for first, _ in drawn.rows] == [first for first, _ in layer_rows(layers, rows)]


def test_one_value_of_a_hundred_thousand_is_seen() -> None:
    values = np.ones((20, 100_000))
    values[13, 77_777] = 50.0
    for rows in (20, 4):
        drawn = heat_map(views(values), 100, rows, by_change=True)
        assert drawn is not None
        row, column = np.argwhere(drawn.level == LEVELS - 1)[0]
        first, end = drawn.rows[row]
        assert first <= 13 < end
        assert column in (77, 78)


def test_dead_and_hot_experts() -> None:
    layers = layers_of(sample.moe())
    assert [layer.name for layer in layers] == ["0", "1", "2", "3"]
    odd = odd_ones(layers)
    assert [(one.kind, one.layer, one.expert, one.is_judged) for one in odd] == [
        ("dead", "2", "3", True),
        ("hot", "2", "5", True),
    ]
    assert odd[0].since == odd[1].since == 3100
    levels, groups = matrix(layers, 80)
    assert len(groups) == 8
    assert levels[2][3] == 0
    assert levels[2][5] > LEVELS // 2
    assert set(levels[0]) == {LEVELS // 2}


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 48), (300, 100)])
@pytest.mark.parametrize("kind", [keys.LAYERS, keys.EXPERTS])
async def test_screens_at_every_size(kind: str, size: tuple[int, int]) -> None:
    async with running(kind, size) as (app, _):
        text = text_of(app)
        assert ("update ratio" if kind == keys.LAYERS else "MaxVio") in text


@pytest.mark.parametrize("kind", [keys.LAYERS, keys.EXPERTS])
async def test_screens_in_ascii(kind: str) -> None:
    async with running(kind, glyphs=ASCII) as (app, _):
        assert text_of(app).isascii()


@pytest.mark.parametrize("kind", [keys.LAYERS, keys.EXPERTS])
async def test_a_run_without_says_what_to_log(kind: str) -> None:
    async with running(keys.RUN) as (app, pilot):
        await pilot.press("L" if kind == keys.LAYERS else "X")
        await pilot.pause()
        await pilot.press("v", "w", "j", "G", "plus", "enter", "f", "escape", "Y", "right_square_bracket")
        await pilot.pause()
        assert "no per-layer values" in text_of(app) or "no experts" in text_of(app) or "expert" in text_of(app)


async def test_zoom_holds_for_the_map() -> None:
    async with running(keys.LAYERS, (160, 48)) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LayersScreen)
        assert screen.heat.drawn is not None
        whole = screen.heat.drawn.ends
        await pilot.press("plus", "plus")
        await pilot.pause()
        assert screen.heat.drawn.ends == screen.grid.view.stretch
        assert screen.heat.drawn.ends != whole
