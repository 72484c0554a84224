"""Whatever stands in a log is shown as text: no character that a terminal obeys, hides or reorders passes."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.text import printable, strip_escapes

# Marks that are drawn, although Unicode counts them among the formats.
_DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
# Ignorable by default (Unicode's DerivedCoreProperties): invisible, of any category.
_INVISIBLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)


def test_each_character_that_is_no_mark_on_the_screen_is_written_out() -> None:
    hidden = {code for first, last in _INVISIBLE for code in range(first, last + 1)}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        is_obeyed = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in _DRAWN
        if (is_obeyed or code in hidden) and character not in "\t\r\n\x1b\x9b":
            shown = printable(f"a{character}b")
            assert shown.startswith("a\\"), hex(code)
            assert shown.endswith("b"), hex(code)
            assert int(shown[3:-1], 16) == code
    assert printable("a\tb") == "a b"
    assert printable("line\r\n") == "line"
    assert printable("a\rb\nc") == "a\\x0db\\x0ac"


@pytest.mark.parametrize("text", ["ß", "損失", "⚠\ufe0f", "loss ▁▂▃", "é", "e\u0301", "🚀", "\u0601"])
def test_what_is_a_mark_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    "sequence",
    [
        *("\x1b[31m", "\x9b31m", "\x9b?25l", "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\"),
        *("\x1bP1$r\x9c", "\x1b_apc\x1b\\", "\x1b^pm\x07", "\x1bXsos\x1b\\", "\x1bc", "\x1b(0"),
    ],
)
def test_sequences_leave_nothing(sequence: str) -> None:
    assert strip_escapes(f"a{sequence}b") == "ab"
    assert printable(f"a{sequence}b") == "ab"


@given(st.text(st.characters(), max_size=60), st.integers(1, 40))
def test_what_is_shown_is_one_bounded_line(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert shown.splitlines() in ([], [shown])
    assert len(shown) <= 10 * limit
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert printable(shown, len(shown) + 1) == shown


def test_a_long_line_is_cut_and_says_so() -> None:
    assert printable("x" * 3000) == "x" * 1999 + "…"
    assert printable("é" * 3000, 10) == "é" * 9 + "…"
    assert printable("x" * 10, 10) == "x" * 10
