"""A chart as inline SVG for HTML reports: one curve, its episodes shaded, no script and nothing from outside."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from trainmon.monitor.amount import digits
from trainmon.monitor.text_chart import beyond_words, pieces, shown_range, thinned
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tails.text import printable

_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 26, 26
_TITLE = 84  # characters that fit beside the name of the axis


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of x to shade, and what it is."""

    first: float
    last: float
    title: str
    is_fail: bool = False


def svg_chart(
    x: FloatArray,
    y: FloatArray,
    *,
    title: str,
    x_label: str = "step",
    bad: FloatArray | None = None,
    bands: Sequence[Band] = (),
    ticks: Sequence[tuple[float, str]] = (),
    width: int = 760,
    height: int = 200,
) -> str:
    """The `<svg>` element, "" where no point is finite. `bad`: x at which NaN or Inf was logged, marked at the top;
    `ticks`: (x, what) marked at the foot."""
    x, y = thinned(x, y, width)
    if not x.size:
        return ""
    low, high, beyond = shown_range(y)
    title += beyond_words(beyond)
    y = np.clip(y, low, high)
    if low == high:
        low, high = low - (abs(low) or 1.0) * 0.05, high + (abs(high) or 1.0) * 0.05
    first, last = float(x.min()), float(x.max())
    span = (last - first) or 1.0
    across, down = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM

    def at(value: float) -> float:
        return _LEFT + across * (min(max(value, first), last) - first) / span

    def path_of(part_x: FloatArray, part_y: FloatArray) -> str:
        down_y = _TOP + down * (high - part_y) / (high - low)
        return " ".join(f"{at(px):.1f},{py:.1f}" for px, py in zip(part_x.tolist(), down_y.tolist(), strict=True))

    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f" aria-label={quoteattr(printable(title, 200))}>",
        f'<text class="title" x="{_LEFT}" y="16">{escape(printable(title, _TITLE))}</text>',
    ]
    for band in joined([band for band in bands if band.last >= first and band.first <= last]):
        begin, end = at(band.first), at(band.last)
        name = escape(printable(band.title, 300))
        parts.append(
            f'<rect class="{"fail" if band.is_fail else "warn"}" x="{begin:.1f}" y="{_TOP}" '
            f'width="{max(end - begin, 3):.1f}" height="{down}"><title>{name}</title></rect>'
        )
    for value in np.linspace(low, high, 4).tolist():
        py = _TOP + down * (high - value) / (high - low)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{width - _RIGHT}" y1="{py:.1f}" y2="{py:.1f}"/>')
        parts.append(f'<text class="y" x="{_LEFT - 6}" y="{py + 4:.1f}">{escape(digits(value))}</text>')
    for value in round_values(first, last):
        side = " first" if value == first else " last" if value == last else ""
        parts.append(f'<text class="x{side}" x="{at(value):.1f}" y="{height - 8}">{escape(_step(value))}</text>')
    parts.append(f'<text class="unit" x="{width - _RIGHT}" y="16">{escape(x_label)}</text>')
    for part_x, part_y in pieces(x, y, bad):
        path = path_of(part_x, part_y)
        # A point alone between two stretches of NaN is drawn as well: a line of no length with round ends.
        parts.append(f'<polyline class="curve" points="{path}{f" {path}" if part_x.size == 1 else ""}"/>')
    hidden = bad[(bad >= first) & (bad <= last)] if bad is not None else x[:0]
    for cross in sorted({round(at(value)) for value in hidden.tolist()}):
        parts.append(f'<path class="bad" d="M{cross - 3} {_TOP} l6 6 m0 -6 l-6 6"><title>not finite</title></path>')
    for tick, what in ticks:
        if first <= tick <= last:
            px = at(tick)
            parts.append(
                f'<path class="tick" d="M{px:.1f} {_TOP + down} l-4 8 h8 z">'
                f"<title>{escape(printable(what, 300))}</title></path>"
            )
    return "".join([*parts, "</svg>"])


def joined(bands: Sequence[Band]) -> list[Band]:
    """Bands of one colour that overlap as one, so that no stretch is shaded twice.

    >>> [(band.first, band.last, band.title) for band in joined([Band(3, 9, "b"), Band(1, 4, "a"), Band(20, 21, "c")])]
    [(1, 9, 'a; b'), (20, 21, 'c')]
    """
    kept: list[Band] = []
    for band in sorted(bands, key=lambda each: (each.is_fail, each.first, each.last)):
        before = kept[-1] if kept else None
        if before is not None and before.is_fail == band.is_fail and band.first <= before.last:
            title = before.title if band.title in before.title else f"{before.title}; {band.title}"
            kept[-1] = Band(before.first, max(before.last, band.last), title, band.is_fail)
        else:
            kept.append(band)
    return kept


def _step(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e12 else f"{value:.4g}"


def round_values(first: float, last: float) -> list[float]:
    """At most 7 round numbers from `first` to `last`, which are there too where none lies near them.

    >>> round_values(1.0, 500.0)
    [1.0, 100.0, 200.0, 300.0, 400.0, 500.0]
    """
    span = last - first
    if not 0 < span < 1e300:
        return [first]
    raw = span / 5
    unit = 10.0 ** np.floor(np.log10(raw))
    size = float(next(each * unit for each in (1, 2, 5, 10) if each * unit >= raw))
    inner = [float(each) for each in np.arange(np.ceil(first / size), np.floor(last / size) + 1)[:7] * size]
    near = 0.7 * size  # the first and the last stand within the frame, the others around their step
    inner = [each for each in inner if each in (first, last) or (each - first > near and last - each > near)]
    return sorted({first, *inner, last})


STYLE = """svg .title{font-weight:600} svg text{font:12px system-ui,sans-serif;fill:currentColor}
svg .y{text-anchor:end} svg .x{text-anchor:middle} svg .first{text-anchor:start} svg .last{text-anchor:end}
svg .unit{text-anchor:end;opacity:.7}
svg .grid{stroke:currentColor;opacity:.15} svg .bad{stroke:#d55e00;stroke-width:1.5}
svg .curve{fill:none;stroke:#0072b2;stroke-width:1.4;stroke-linecap:round}
svg .warn{fill:#e69f00;opacity:.3} svg .fail{fill:#d55e00;opacity:.35} svg .tick{fill:#009e73}"""
