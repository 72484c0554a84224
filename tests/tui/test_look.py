"""Colours: on every depth what must be told apart is told apart, and never by colour alone."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem

from trainmon.tui.glyphs import ASCII, UNICODE, Glyphs
from trainmon.tui.heat import LEVELS
from trainmon.tui.look import Look

NAMES = (
    "pass",
    "warn",
    "fail",
    "key",
    "note",
    "error",
    "threshold",
    "older",
    "raw",
    "line0",
    "heat8",
    "turn0",
    "turn8",
)
DEPTHS = {False: ColorSystem.EIGHT_BIT, True: ColorSystem.STANDARD}


def numbers(look: Look, fg: str, bg: str = "") -> tuple[object, object]:
    style, depth = look.style(fg, bg), DEPTHS[look.few_colours]
    assert style.color is not None
    assert style.bgcolor is not None
    return style.color.downgrade(depth).number, style.bgcolor.downgrade(depth).number


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_text_is_never_of_the_colour_of_its_ground(dark: bool, few: bool) -> None:
    look = Look(UNICODE, dark, few)
    for name in (*NAMES, "text", "muted", "faint", "title", "value"):
        ink, ground = numbers(look, name)
        assert ink != ground, name
    for ground_name in ("shade_warn", "shade_fail", "cursor", "cursor_idle"):
        ink, ground = numbers(look, "text", ground_name)
        assert ink != ground, ground_name
        if ground_name != "cursor_idle":  # marked by its glyph too
            assert ground != numbers(look, "text")[1], ground_name


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dark", [False, True])
def test_verdicts_differ(dark: bool, few: bool) -> None:
    look = Look(UNICODE, dark, few)
    assert len({numbers(look, name) for name in ("pass", "warn", "fail")}) == 3


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_what_has_a_colour_has_a_glyph_too(glyphs: Glyphs) -> None:
    for marks in (glyphs.heat, glyphs.turn, tuple(glyphs.ticks.values()), tuple(glyphs.verdicts.values())):
        assert len(set(marks)) == len(marks)
    assert len({level * len(glyphs.heat) // LEVELS for level in range(LEVELS)}) == len(glyphs.heat)
