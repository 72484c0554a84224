"""Numbers in sentences: few digits, always with their unit."""

from __future__ import annotations

import math
from typing import Final

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID

_GIB: Final = 2.0**30
_LARGE: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_RATES: Final = {
    "sys.compute_rate": "FLOP/s",
    "sys.tokens_per_second": "tokens/s",
    "sys.samples_per_second": "samples/s",
}


def digits(value: float) -> str:
    """Three significant digits (four from 1 to 10), without an exponent where none is needed.

    >>> [digits(x) for x in (3.10321, 0.2523, 41.52, 1234.5, 0.00031, float("inf"))]
    ['3.103', '0.252', '41.5', '1,234', '0.00031', 'Inf']
    """
    if not math.isfinite(value):
        return "NaN" if value != value else ("Inf" if value > 0 else "-Inf")
    if 1 <= abs(value) < 10:
        return f"{value:.4g}"
    if 100 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def large(value: float) -> str:
    """A large number by thousands.

    >>> large(168_900.0), large(3.447e14), large(12.0), large(999_960.0)
    ('169k', '345 T', '12.0', '1.00M')
    """
    for factor, prefix in _LARGE:
        if abs(value) >= factor * 0.9995:
            scaled = value / factor
            places = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
            shown = f"{scaled:.{places}f}"
            return f"{shown} {prefix}" if factor >= 1e9 else f"{shown}{prefix}"
    return digits(value) if abs(value) < 1 else f"{value:.1f}"


def amount(signal: str, value: float) -> str:
    """`value` of `signal` as a person reads it.

    >>> amount("sys.step_time", 3.10321), amount("sys.tokens_per_second", 168900.0), amount("sys.mfu", 0.2481)
    ('3.10 s', '169k tokens/s', '24.8%')
    >>> amount("sys.compute_rate", 3.447e14), amount("sys.peak_memory", 6.2e10), amount("loss.train", 2.31)
    ('345 TFLOP/s', '57.7 GiB', '2.31')
    """
    if not math.isfinite(value):
        return digits(value)
    known = BY_ID.get(signal)
    unit = known.unit if known is not None else ""
    if signal in _RATES:
        shown = large(value)
        return f"{shown}{_RATES[signal]}" if shown.endswith(("P", "T", "G")) else f"{shown} {_RATES[signal]}"
    if unit == "share":
        return f"{100 * value:.3g}%"
    if unit in ("bytes", "B"):
        return f"{value / _GIB:.1f} GiB"
    if unit in ("s", "seconds"):
        if abs(value) < 0.1:
            return f"{value * 1e3:.3g} ms"
        return f"{value:.3f} s" if abs(value) < 1 else f"{value:.2f} s" if abs(value) < 100 else f"{value:,.0f} s"
    return digits(value)


def named(key: SignalKey) -> str:
    """A series in plain words.

    >>> named(SignalKey("moe.entropy", (("layer", "2"),))), named(SignalKey("loss.source", (("source", "code"),)))
    ('router entropy (layer 2)', 'loss by source (source code)')
    """
    known = BY_ID.get(key.signal)
    labels = ", ".join(f"{name} {value}" for name, value in key.labels)
    title = known.title if known is not None else key.signal
    return f"{title} ({labels})" if labels else title
