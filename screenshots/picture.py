"""Terminal pictures (the SVG that Textual exports) as PNG, each character in its cell whatever font is there."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

from rich.cells import cell_len

_TEXT = re.compile(r'<text class="([^"]*)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"([^>]*)>([^<]*)</text>')
_FONT_FACE = re.compile(r"@font-face \{.*?\}", re.DOTALL)


def in_cells(svg: str) -> str:
    """`svg` with one text element a character: converters that ignore ``textLength`` then still keep the columns."""
    return _FONT_FACE.sub("", _TEXT.sub(_exploded, svg)).replace("Fira Code", "DejaVu Sans Mono")


def _exploded(match: re.Match[str]) -> str:
    css, x, y, length, rest, body = match.groups()
    text = html.unescape(body)
    cells = cell_len(text)
    if not cells or "title" in css:
        return match.group()
    width = float(length) / cells
    parts, at = [], float(x)
    for character in text:
        if not character.isspace():
            shown = html.escape(character)
            parts.append(f'<text class="{css}" x="{at:.1f}" y="{y}"{rest}>{shown}</text>')
        at += width * cell_len(character)
    return "".join(parts)


_ID = re.compile(r"terminal-\d+-")
_LINE_CLIP = re.compile(r' clip-path="url\(#t-line-\d+\)"')
_LINE_CLIP_PATH = re.compile(r'<clipPath id="t-line-\d+">\s*<rect[^>]*/>\s*</clipPath>\s*')


def shortened(svg: str) -> str:
    """The same picture in fewer bytes: short names, and no clip path for lines that have the right length anyway."""
    return _LINE_CLIP.sub("", _LINE_CLIP_PATH.sub("", _ID.sub("t-", svg)))


def write_png(svg: str, path: Path) -> None:
    """Writes `svg` as a PNG. Raises RuntimeError when no converter is installed."""
    placed = in_cells(svg)
    if (tool := shutil.which("rsvg-convert")) is not None:
        subprocess.run([tool, "-o", str(path)], input=placed.encode(), check=True)
        _fewer_colours(path)
        return
    try:
        import cairosvg
    except ImportError as error:
        raise RuntimeError("install rsvg-convert (librsvg2-bin) or cairosvg to write PNG files") from error
    cairosvg.svg2png(bytestring=placed.encode(), write_to=str(path))
    _fewer_colours(path)


def _fewer_colours(path: Path) -> None:
    """A quarter of the bytes for the same picture: a terminal has few colours. Left as it is without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(128, method=Image.Quantize.MAXCOVERAGE)
    small.save(path, optimize=True)
