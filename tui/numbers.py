"""Numbers as people read them on a screen: short, aligned, with their unit."""

from __future__ import annotations

import math

_THOUSANDS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BYTES = ((1024.0**5, "PiB"), (1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB"))
MISSING = "-"


def plain(value: float) -> str:
    """Three significant digits or so, never wider than seven characters.

    >>> [plain(v) for v in (2.3141, 0.03127, 145_300.0, 12.0, 3e-5, 1e20, float("nan"))]
    ['2.314', '0.0313', '145k', '12.0', '3.0e-5', '1.0e20', 'NaN']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Inf" if value > 0 else "-Inf")
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e18:
        mantissa, _, exponent = f"{value:.1e}".partition("e")
        return f"{mantissa}e{int(exponent)}"
    if size >= 9999.5:
        return count(value)
    for limit, digits in ((1.0, 4), (10.0, 3), (100.0, 1)):
        if size < limit:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def within(value: float, width: int) -> str:
    """As `plain`, with as many digits less as `width` characters ask for: half a number says nothing.

    >>> within(-0.01234, 6), within(-123456.0, 6), within(-3e-5, 6), within(2.3141, 6)
    ('-0.012', '-123k', '-3e-5', '2.314')
    """
    text = plain(value)
    if len(text) <= width:
        return text
    if 1e-3 <= abs(value) < 9999.5:
        shorter = (f"{value:.{digits}f}" for digits in (3, 2, 1, 0))
        return next((one for one in shorter if len(one) <= width), text)
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def score(value: float) -> str:
    """A z: its tenths are noise already.

    >>> score(0.4692), score(46.04), score(3e6)
    ('0.5', '46.0', '3.00M')
    """
    return f"{value:.1f}" if abs(value) < 999.5 else plain(value)


def count(value: float) -> str:
    """A number of things; exact below ten thousand.

    >>> [count(v) for v in (0, 999, 9999, 12_345, 145_000, 2_000_000, 3.2e12)]
    ['0', '999', '9999', '12.3k', '145k', '2.00M', '3.20T']
    """
    if not math.isfinite(value):
        return plain(value)
    size = abs(value)
    if size < 9999.5:
        return f"{value:.0f}"
    for index, (factor, suffix) in enumerate(_THOUSANDS):
        scaled = value / factor
        if abs(scaled) >= 0.9995:
            if abs(scaled) >= 999.5 and index:
                factor, suffix = _THOUSANDS[index - 1]
                scaled = value / factor
            return f"{_three(scaled)}{suffix}"
    return f"{value:.0f}"


def _three(value: float) -> str:
    size = abs(value)
    return f"{value:.2f}" if size < 9.995 else f"{value:.1f}" if size < 99.95 else f"{value:.0f}"


def step(value: float) -> str:
    """A step in full, as a person would search the log for it.

    >>> step(2001.0), step(0.5), step(float("nan"))
    ('2001', '0.5', '-')
    """
    if not math.isfinite(value):
        return MISSING
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def size(value: float) -> str:
    """Bytes.

    >>> size(18_361_000_000), size(512)
    ('17.1 GiB', '512 B')
    """
    if not math.isfinite(value):
        return plain(value)
    for factor, suffix in _BYTES:
        if abs(value) >= factor:
            return f"{_three(value / factor)} {suffix}"
    return f"{value:.0f} B"


def percent(share: float) -> str:
    """A share of one.

    >>> percent(0.713), percent(0.004), percent(1.0)
    ('71%', '0.4%', '100%')
    """
    if not math.isfinite(share):
        return plain(share)
    value = share * 100
    return f"{value:.1f}%" if 0 < abs(value) < 9.95 else f"{value:.0f}%"


def duration(seconds: float | None) -> str:
    """Two units at most.

    >>> [duration(v) for v in (0.4, 42, 183, 4320, 277_200, None)]
    ['0s', '42s', '3m 3s', '1h 12m', '3d 5h', '-']
    """
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return MISSING
    whole = int(seconds)
    for unit, name, below, below_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            rest = whole % unit // below
            return f"{whole // unit}{name} {rest}{below_name}" if rest else f"{whole // unit}{name}"
    return f"{whole}s"


def age(seconds: float | None) -> str:
    """One unit, at most four characters; from ten seconds on in steps of five: each change is sent over the link.

    >>> [age(v) for v in (0.2, 9.9, 59, 61, 7300, 200_000, 1e9, None)]
    ['0s', '9s', '55s', '1m', '2h', '2d', '31y', '-']
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    whole = max(0, int(seconds))
    for unit, name in ((31_536_000, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if whole >= unit:
            return f"{whole // unit}{name}"
    return f"{whole if whole < 10 else whole // 5 * 5}s"


def with_unit(value: float, unit: str) -> str:
    """`value` in the unit that its signal is stored in, the unit written out where it is not plain.

    >>> with_unit(2.3141, "nats"), with_unit(0.71, "share"), with_unit(18_361_000_000, "B")
    ('2.314 nats', '71%', '17.1 GiB')
    >>> with_unit(1.21, "s"), with_unit(0.0031, "s"), with_unit(145_000, "tokens/s"), with_unit(3.25, "")
    ('1.210 s', '3.10 ms', '145k tok/s', '3.250')
    >>> with_unit(14_200, "tokens/s/GPU")
    '14.2k tok/s/GPU'
    """
    if not math.isfinite(value):
        return plain(value)
    match unit:
        case "share":
            return percent(value)
        case "B":
            return size(value)
        case "s":
            return f"{_three(value * 1000)} ms" if 0 < abs(value) < 0.1 else f"{plain(value)} s"
        case "tokens/s" | "tokens/s/GPU":
            return f"{count(value) if abs(value) >= 1000 else plain(value)} {short_unit(unit)}"
        case "FLOP/s" | "FLOP":
            return f"{count(value)}{unit}"
        case "steps" | "tokens" | "samples":
            return f"{count(value)} {unit}"
        case "":
            return plain(value)
    return f"{plain(value)} {unit}"


def short_unit(unit: str) -> str:
    """A unit as it stands behind a number.

    >>> short_unit("tokens/s/GPU"), short_unit("nats")
    ('tok/s/GPU', 'nats')
    """
    return unit.replace("tokens/s", "tok/s")


def axis(value: float, unit: str, span: float = math.nan) -> str:
    """A label for a y axis that covers `span`: as exact as tells two labels apart, without the title's words.

    >>> axis(0.9, "share"), axis(18_361_000_000, "B"), axis(2.3, "nats"), axis(145_000, "tokens/s")
    ('90%', '17.1G', '2.300', '145k')
    >>> axis(12.7312, "nats", 0.3), axis(5.7, "nats", 3.4), axis(42.9, "", 42.0), axis(0.0, "z", 6.0)
    ('12.73', '5.7', '43', '0')
    """
    if unit == "share":
        return percent(value) if not 0 < span < 0.05 else f"{value * 100:.1f}%"
    if unit == "B" and math.isfinite(value):
        return size(value).replace(" ", "").replace("iB", "")
    if value == 0 or not (math.isfinite(value) and math.isfinite(span) and span > 0):
        return plain(value)
    digits = 1 - math.floor(math.log10(span))
    if not 1e-3 <= abs(value) < 9999.5 or digits > 4:
        return plain(value)
    return f"{value:.{max(0, digits)}f}"


def change(before: float, now: float) -> str:
    """The relative change, signed; "" when it says nothing.

    >>> change(2.0, 2.5), change(2.0, 1.996), change(1.0, 12.0), change(0.0, 1.0)
    ('+25%', '-0.2%', '12x', '')
    """
    if not (math.isfinite(before) and math.isfinite(now)) or before == 0:
        return ""
    ratio = now / before
    if ratio >= 10:
        return f"{ratio:.0f}x" if ratio < 1e4 else ""
    relative = (now - before) / abs(before) * 100
    if abs(relative) < 0.05:
        return "+0%"
    return f"{relative:+.1f}%" if abs(relative) < 9.95 else f"{relative:+.0f}%"
