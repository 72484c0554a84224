"""Only cells that differ are written, and all of those: whatever is dirty, in whatever order, the screen ends right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from trainmon.tui import thin
from trainmon.tui.thin import ThinCompositor

WIDTH, HEIGHT = 12, 3
PLACE = Region(2, 1, WIDTH, HEIGHT)


@pytest.fixture(autouse=True, scope="module")
def _short_lines() -> Iterator[None]:
    """What is alike between two changes is left out of these short lines too."""
    usual, thin._ALIKE = thin._ALIKE, 3
    yield
    thin._ALIKE = usual


class Letters(Widget):
    """Lines of letters, one segment a letter."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = ["a" * WIDTH] * HEIGHT

    def render_lines(self, crop: Region) -> list[Strip]:
        return [Strip([Segment(letter) for letter in self.lines[y]], WIDTH) for y in crop.line_range]


REGIONS = st.builds(
    lambda x, y, width, height: Region(PLACE.x + x, PLACE.y + y, min(width, WIDTH - x), min(height, HEIGHT - y)),
    st.sampled_from([0, 0, 3, WIDTH - 4]),
    st.integers(0, HEIGHT - 1),
    st.sampled_from([4, WIDTH, WIDTH]),
    st.integers(1, HEIGHT),
)
TURNS = st.lists(
    st.tuples(
        st.lists(st.text("abc", min_size=WIDTH, max_size=WIDTH), min_size=HEIGHT, max_size=HEIGHT), st.booleans()
    ),
    min_size=1,
    max_size=6,
)


@given(TURNS, st.data())
def test_what_is_said_to_be_dirty_stands_on_the_screen(
    turns: list[tuple[list[str], bool]], data: st.DataObject
) -> None:
    compositor, widget = ThinCompositor(), Letters()
    screen = [["a"] * (PLACE.right + 1) for _ in range(PLACE.bottom)]
    for lines, is_cleared in turns:
        if is_cleared:
            compositor._written.clear()  # as after a layout, or where Textual's own way was taken
        widget.lines = lines
        dirty = data.draw(st.lists(REGIONS, max_size=4))
        for region in dirty:
            for x, y, strip in compositor._pieces(widget, PLACE, region):
                screen[y][x : x + strip.cell_length] = strip.text
        for region in dirty:
            for y in region.line_range:
                wanted = lines[y - PLACE.y][region.x - PLACE.x : region.right - PLACE.x]
                assert "".join(screen[y][region.x : region.right]) == wanted


def test_a_part_that_is_drawn_first_hides_nothing_of_the_whole() -> None:
    compositor, widget = ThinCompositor(), Letters()
    widget.lines = ["b" * WIDTH] * HEIGHT
    age, row = Region(PLACE.right - 4, PLACE.y, 4, 1), Region(PLACE.x, PLACE.y, WIDTH, 1)
    written = {
        x + n
        for place in (age, row)
        for x, _, strip in compositor._pieces(widget, PLACE, place)
        for n in range(strip.cell_length)
    }
    assert written == set(range(PLACE.x, PLACE.right))
