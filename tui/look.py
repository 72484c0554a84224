"""How names of styles become colours, or attributes where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.palettes import DARK, FEW_DARK, FEW_LIGHT, LIGHT, Palette
from trainmon.tui.span import Line, pad

LINE_STYLES = 8
# Without colours a ground that matters is told by an attribute.
_PLAIN_GROUNDS = {
    "cursor": Style(reverse=True),
    "shade_warn": Style(underline=True),
    "shade_fail": Style(underline=True),
}


@lru_cache(4096)
def plain(style: Style) -> Style:
    """`style` without colours; bold, reverse and the like stay."""
    return Style(
        bold=style.bold,
        dim=style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=style.reverse,
        meta=style.meta or None,
    )


class PlainFilter(LineFilter):
    """Takes every colour out of what Textual draws (NO_COLOR): not even the terminal's default ones are named."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        del background
        return [Segment(text, None if style is None else plain(style), control) for text, style, control in segments]


@dataclass(frozen=True, slots=True)
class Look:
    """Glyphs and colours of one terminal."""

    glyphs: Glyphs
    dark: bool = True
    few_colours: bool = False
    no_colours: bool = False
    _styles: dict[tuple[str, str], Style] = field(default_factory=dict)

    def style(self, fg: str, bg: str = "") -> Style:
        """The style named `fg` on the ground named `bg`. Raises KeyError for a name that is not there."""
        known = self._styles.get((fg, bg))
        if known is None:
            known = _style(self._palette, fg, bg)
            if self.no_colours:
                known = plain(known) + _PLAIN_GROUNDS.get(bg, Style())
            self._styles[fg, bg] = known
        return known

    @property
    def _palette(self) -> Palette:
        if self.few_colours:
            return FEW_DARK if self.dark else FEW_LIGHT
        return DARK if self.dark else LIGHT

    def strip(self, line: Line, width: int, bg: str = "") -> Strip:
        """`line` as `width` cells for Textual, on ground `bg` where a span has none of its own."""
        return self._as_strip(pad(line, width, bg), width, bg)

    def strips(self, lines: Iterable[Line], width: int) -> list[Strip]:
        """Each line by `strip`."""
        return [self.strip(line, width) for line in lines]

    def full_strips(self, lines: Iterable[Line], width: int) -> list[Strip]:
        """The same of lines that are `width` cells wide as they are."""
        return [self._as_strip(line, width) for line in lines]

    def _as_strip(self, line: Line, width: int, bg: str = "") -> Strip:
        if not self.glyphs.braille:
            line = [span._replace(text=ascii_cells(span.text)) for span in line]
        style = self.style
        return Strip([Segment(text, style(fg, ground or bg)) for text, fg, ground in line], width)


class AsciiFilter(LineFilter):
    """Nothing but ASCII reaches the terminal, whatever Textual's own widgets draw (frames, icons, bars)."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        del background
        return [Segment(ascii_cells(text), style, control) for text, style, control in segments]


def _style(palette: Palette, fg: str, bg: str) -> Style:
    lines, grounds = palette["lines"], palette["bg"]
    assert isinstance(lines, tuple)
    assert isinstance(grounds, dict)
    name, digit = fg.rstrip("0123456789"), fg[-1:]
    if name in ("heat", "turn"):
        steps = palette[name]
        assert isinstance(steps, tuple)
        text = str(steps[int(digit)])
    elif fg.startswith("line"):
        text = str(lines[int(fg[4:]) % LINE_STYLES])
    elif fg.startswith("label"):
        text = f"bold {lines[int(fg[5:]) % LINE_STYLES]}"
    else:
        text = str(palette[fg])
    return Style.parse(f"{text} on {grounds[bg]}")


def ascii_cells(text: str) -> str:
    """`text` for a terminal that shows ASCII only: as many cells, "?" for what cannot be shown.

    >>> ascii_cells("naïve 模 …")
    'na?ve ?? ~'
    """
    if text.isascii():
        return text
    return "".join(c if c.isascii() else _NEAR.get(c, "?" * cell_len(c)) for c in text)


_NEAR = {"…": "~", "·": "-", "–": "-", **dict.fromkeys("▔▁─━═▄▀", "-"), **dict.fromkeys("│┃▌▐▊▎█", "|"), "🔎": "/ "}


def has_few_colours(environment: Mapping[str, str]) -> bool:
    """Whether the terminal has sixteen colours or fewer, as far as it says.

    >>> [has_few_colours(one) for one in ({"TERM": "xterm"}, {"TERM": "tmux-256color"}, {"COLORTERM": "truecolor"})]
    [True, False, False]
    """
    if environment.get("COLORTERM", "").strip().lower() in ("truecolor", "24bit"):
        return False
    return environment.get("TERM", "").rpartition("-")[2] not in ("256color", "kitty", "direct", "ghostty")


def prefers_dark(environment: Mapping[str, str]) -> bool:
    """False where the terminal says that it is light: ``TRAINMON_THEME=light``, or ``COLORFGBG`` ending in 7 or 15.

    >>> prefers_dark({"COLORFGBG": "0;15"}), prefers_dark({}), prefers_dark({"TRAINMON_THEME": "light"})
    (False, True, False)
    """
    wish = environment.get("TRAINMON_THEME", "").lower()
    if wish in ("light", "dark"):
        return wish == "dark"
    return environment.get("COLORFGBG", "").rpartition(";")[2] not in ("7", "15")
