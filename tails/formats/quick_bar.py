"""Frames of a bar whose like was read before: taken apart by one expression, as bytes.

A bar is redrawn with other numbers behind the same words. What its words mean (label, prefix, keys) is learned from one
frame that was read in full, and only if this expression finds in that frame what the full reading found.
"""

from __future__ import annotations

import re

from trainmon.tails.formats.bar import Bar, postfix_of, read_bar
from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.numbers import clock_seconds
from trainmon.tails.prefix import Prefix, read_prefix
from trainmon.tails.quick_dataclass import dataclass

_VALUE = rb"(?>[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|inf))"
QUICK_FRAME = re.compile(
    rb"((?P<head>[^|<=\[\]\r\n\x1b\0]{0,200}\d%\|)[\d# \xe2\x96\x80-\x9f]{0,400}\| ?"
    rb"(?P<n>\d{1,15})/(?P<total>\d{1,15}))"
    rb" \[(?P<elapsed>\d[\d:]{1,12})(?P<rest><[\d:?]{1,12}, +[\d.?]{1,12}(?P<unit>[A-Za-z]{0,12}/[A-Za-z]{1,12})"
    rb"(?P<metrics>(?:, [A-Za-z_][\w./-]{0,79}=" + _VALUE + rb"){1,200})\])\s*(?:\x1b\[[AK]\s*)*$"
)
_LIMIT = 4096
_STEPS = ("step", "global_step")
_GLUED = b"slurmstepd"

_Key = tuple[bytes, bytes, tuple[bytes, ...]]  # head, unit of the speed, names of the metrics


@dataclass(frozen=True, slots=True)
class QuickFrame:
    """What one frame says. `named_step`: the step among its metrics."""

    prefix: Prefix
    bar: Bar
    values: dict[str, float | None]
    named_step: float | None


@dataclass(frozen=True, slots=True)
class _Known:
    """What frames of the same words have in common. `kept`: the metrics' places and keys; `step_at`: of the step."""

    prefix: Prefix
    label: str
    kept: tuple[tuple[int, str], ...]
    step_at: int


class QuickBars:
    """What is known of the bars of one file; bounded."""

    def __init__(self) -> None:
        self._known: dict[_Key, _Known | None] = {}

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()

    def read(self, match: re.Match[bytes]) -> QuickFrame | None:
        """What a frame that `QUICK_FRAME` matches says; None where frames of its words must be read in full."""
        key, raw = _parts(match)
        known = self._known.get(key)
        return None if known is None else _read(known, match, raw)

    def knows(self, match: re.Match[bytes]) -> bool:
        """Whether frames of these words were tried."""
        return _parts(match)[0] in self._known

    def learn(self, match: re.Match[bytes], *, is_metrics: bool) -> None:
        """Keeps what the words of a frame mean that was read in full. `is_metrics`: as a bar's frame with metrics."""
        if len(self._known) >= _LIMIT:
            self._known.clear()
        key, raw = _parts(match)
        self._known[key] = _learned(match, key, raw) if is_metrics else None


def _parts(match: re.Match[bytes]) -> tuple[_Key, list[bytes]]:
    """The words of a frame, and its metrics as they are written."""
    parts = match["metrics"].replace(b"=", b", ").split(b", ")
    return (match["head"], match["unit"], tuple(parts[1::2])), parts[2::2]


def _read(known: _Known, match: re.Match[bytes], raw: list[bytes]) -> QuickFrame:
    elapsed = clock_seconds(match["elapsed"].decode("ascii"))
    bar = Bar(known.label, float(match["n"]), float(match["total"]), elapsed, match["rest"].decode("ascii"))
    step = float(raw[known.step_at]) if known.step_at >= 0 else None
    return QuickFrame(known.prefix, bar, {name: float(raw[at]) for at, name in known.kept}, step)


def _learned(match: re.Match[bytes], key: _Key, raw: list[bytes]) -> _Known | None:
    """What frames like this one have in common, if reading it by that gives the same as reading it in full."""
    names = [name.decode("ascii") for name in key[2]]
    steps = [at for at, name in enumerate(names) if name in _STEPS]
    if len(set(names)) < len(names) or len(steps) > 1 or _GLUED in key[0] or key[0][:1] == b"{":
        return None
    text = match.string.decode("utf-8", "replace")
    prefix = read_prefix(text)
    bar = read_bar(text[prefix.at :])
    if bar is None or METRIC.search(bar.label):  # metrics of the label change from frame to frame
        return None
    values = postfix_of(bar)
    kept = tuple((at, name) for at, name in enumerate(names) if name in values)
    known = _Known(prefix, bar.label, kept, steps[0] if steps else -1)
    found = _read(known, match, raw)
    is_same = (found.bar.n, found.bar.total, found.bar.elapsed) == (bar.n, bar.total, bar.elapsed)
    return known if is_same and repr(found.values) == repr(values) else None
