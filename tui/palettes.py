"""The colours: on dark and on light ground, each also for terminals of sixteen colours.

Hues after Okabe and Ito: safe for colour-blind eyes. A palette gives each name of a style its colour (and "bold"),
`lines` those of curves, `heat` and `turn` those of maps from low to high, `bg` the grounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

Palette = Mapping[str, object]

DARK: Palette = {
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
LIGHT: Palette = {
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
FEW_DARK: Palette = {
    **DARK,
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
FEW_LIGHT: Palette = {
    **LIGHT,
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


def _theme(name: str, palette: Palette, surface: str, *, dark: bool) -> Theme:
    """Textual's own widgets (palette of commands, messages) in the same colours."""
    grounds = palette["bg"]
    assert isinstance(grounds, dict)
    colours = {style: str(palette[style]).rpartition(" ")[2] for style in ("text", "key", "pass", "warn", "fail")}
    return Theme(
        name=name,
        primary=colours["key"],
        secondary=colours["pass"],
        warning=colours["warn"],
        error=colours["fail"],
        success=colours["pass"],
        accent=colours["key"],
        foreground=colours["text"],
        background=grounds[""],
        surface=surface,
        panel=grounds["bar"],
        dark=dark,
    )


DARK_THEME = _theme("trainmon-dark", DARK, "#141a1f", dark=True)
LIGHT_THEME = _theme("trainmon-light", LIGHT, "#f1f3f5", dark=False)
