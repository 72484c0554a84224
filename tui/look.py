"""How names of styles become colours, on dark and on light ground.

Hues after Okabe and Ito: safe for colour-blind eyes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip
from textual.theme import Theme

from trainmon.tui.glyphs import Glyphs
from trainmon.tui.span import Line, pad

_DARK = {
    "text": "#d6dade",
    "muted": "#98a2ad",
    "faint": "#66717d",
    "title": "bold #e8ecf0",
    "value": "bold #ffffff",
    "key": "#56b4e9",
    "older": "#5b6672",
    "raw": "#41708f",
    "threshold": "#b08a3c",
    "pass": "#2fbf8f",
    "warn": "bold #f0b000",
    "fail": "bold #ff6a3d",
    "nodata": "#98a2ad",
    "na": "#66717d",
    "info": "#56b4e9",
    "metric": "#8fb8d8",
    "note": "#e0b0d0",
    "error": "bold #ff6a3d",
    "heading": "bold #c3ccd5",
    "lines": ("#56b4e9", "#f0b000", "#2fbf8f", "#e08bc0", "#f0e442", "#ff6a3d", "#9aa8ff", "#c8ccd0"),
    "heat": ("#31456e", "#3f5a86", "#55708f", "#6c8292", "#869391", "#a3a58c", "#c3b881", "#e2cd6b", "#ffe945"),
    "turn": ("#56b4e9", "#4c9bc8", "#437a9c", "#3c5a6e", "#4a525a", "#7a5c34", "#a87526", "#d68c16", "#ffa500"),
    "bg": {
        "": "#0f1317",
        "shade_warn": "#3a3010",
        "shade_fail": "#471f12",
        "cursor": "#25425c",
        "cursor_idle": "#20272e",
        "bar": "#1b2127",
    },
}
_LIGHT = {
    "text": "#23282d",
    "muted": "#57616b",
    "faint": "#868f98",
    "title": "bold #12161a",
    "value": "bold #000000",
    "key": "#0063a5",
    "older": "#a9b1b9",
    "raw": "#8fb6d3",
    "threshold": "#8a6100",
    "pass": "#00704f",
    "warn": "bold #8f5b00",
    "fail": "bold #b83200",
    "nodata": "#57616b",
    "na": "#868f98",
    "info": "#0063a5",
    "metric": "#2f5f85",
    "note": "#8a3f70",
    "error": "bold #b83200",
    "heading": "bold #333a41",
    "lines": ("#0063a5", "#a86400", "#00795a", "#a8487f", "#7a7400", "#b83200", "#4a50c0", "#50565c"),
    "heat": ("#b9c6db", "#9fb2cf", "#869fc2", "#6d8bb3", "#5577a3", "#406391", "#2f507d", "#1f3d66", "#0f2747"),
    "turn": ("#0063a5", "#2f7fb8", "#6aa2cb", "#9dbfd8", "#b3b9bf", "#dcb27e", "#cf8b44", "#b9631c", "#a34400"),
    "bg": {
        "": "#fafbfc",
        "shade_warn": "#f6e6bd",
        "shade_fail": "#fbd5c6",
        "cursor": "#bcdcf5",
        "cursor_idle": "#e2e7ec",
        "bar": "#e4e8ec",
    },
}

# Sixteen colours: what the nearest of them would make alike is told apart here, and grounds are seen.
_FEW_DARK: Mapping[str, object] = {
    **_DARK,
    "raw": "#00aaaa",
    "pass": "#00aa00",
    "fail": "bold #ff5555",
    "warn": "bold #ffff55",
    "note": "#ff55ff",
    "metric": "#aaaaaa",
    "lines": ("#55ffff", "#ffff55", "#55ff55", "#ff55ff", "#ffffff", "#ff5555", "#5555ff", "#aaaaaa"),
    "heat": ("#0000aa", "#0000aa", "#5555ff", "#5555ff", "#00aaaa", "#00aaaa", "#55ffff", "#ffff55", "#ffff55"),
    "turn": ("#55ffff", "#55ffff", "#00aaaa", "#555555", "#555555", "#555555", "#aa5500", "#ffff55", "#ffff55"),
    "bg": {
        "": "#000000",
        "shade_warn": "#aa5500",
        "shade_fail": "#aa0000",
        "cursor": "#0000aa",
        "cursor_idle": "#555555",
        "bar": "#000000",
    },
}
_FEW_LIGHT: Mapping[str, object] = {
    **_LIGHT,
    "text": "#000000",
    "muted": "#555555",
    "faint": "#555555",
    "key": "#0000aa",
    "pass": "#00aa00",
    "warn": "bold #aa5500",
    "fail": "bold #aa0000",
    "error": "bold #aa0000",
    "info": "#0000aa",
    "note": "#aa00aa",
    "metric": "#0000aa",
    "older": "#aaaaaa",
    "raw": "#00aaaa",
    "threshold": "#aa5500",
    "lines": ("#0000aa", "#aa5500", "#00aa00", "#aa00aa", "#555555", "#aa0000", "#00aaaa", "#000000"),
    "heat": ("#aaaaaa", "#aaaaaa", "#00aaaa", "#00aaaa", "#5555ff", "#5555ff", "#0000aa", "#0000aa", "#000000"),
    "turn": ("#0000aa", "#0000aa", "#00aaaa", "#aaaaaa", "#aaaaaa", "#aaaaaa", "#aa5500", "#aa0000", "#aa0000"),
    "bg": {
        "": "#ffffff",
        "shade_warn": "#ffff55",
        "shade_fail": "#ff5555",
        "cursor": "#55ffff",
        "cursor_idle": "#aaaaaa",
        "bar": "#ffffff",
    },
}

DARK_THEME = Theme(
    name="trainmon-dark",
    primary="#56b4e9",
    secondary="#2fbf8f",
    warning="#f0b000",
    error="#ff6a3d",
    success="#2fbf8f",
    accent="#56b4e9",
    foreground="#d6dade",
    background="#0f1317",
    surface="#141a1f",
    panel="#1b2127",
    dark=True,
)
LIGHT_THEME = Theme(
    name="trainmon-light",
    primary="#0063a5",
    secondary="#00795a",
    warning="#8f5b00",
    error="#b83200",
    success="#00704f",
    accent="#0063a5",
    foreground="#23282d",
    background="#fafbfc",
    surface="#f1f3f5",
    panel="#e4e8ec",
    dark=False,
)
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
    def _palette(self) -> Mapping[str, object]:
        if self.few_colours:
            return _FEW_DARK if self.dark else _FEW_LIGHT
        return _DARK if self.dark else _LIGHT

    def strip(self, line: Line, width: int, bg: str = "") -> Strip:
        """`line` as `width` cells for Textual, on ground `bg` where a span has none of its own."""
        spans = pad(line, width, bg)
        if not self.glyphs.braille:
            spans = [span._replace(text=ascii_cells(span.text)) for span in spans]
        return Strip([Segment(span.text, self.style(span.fg, span.bg or bg)) for span in spans], width)

    def strips(self, lines: Iterable[Line], width: int) -> list[Strip]:
        """Each line by `strip`."""
        return [self.strip(line, width) for line in lines]


class AsciiFilter(LineFilter):
    """Nothing but ASCII reaches the terminal, whatever Textual's own widgets draw (frames, icons, bars)."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """See `LineFilter`."""
        del background
        return [Segment(ascii_cells(text), style, control) for text, style, control in segments]


def _style(palette: Mapping[str, object], fg: str, bg: str) -> Style:
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
