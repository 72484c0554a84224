"""Frames of a bar whose like was read before: taken apart by one expression, as bytes.

A bar is redrawn with other numbers behind the same words. What its words mean (label, prefix, keys) is learned from one
frame that was read in full, and only if this expression finds in that frame what the full reading found. What a label
means may change with a heading: then all is learned anew.
"""

from __future__ import annotations

import re

from trainmon.tails.formats.bar import Bar, BarKind, postfix_of, read_bar
from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.numbers import clock_seconds
from trainmon.tails.prefix import Prefix, read_prefix
from trainmon.tails.quick_dataclass import dataclass

_VALUE = rb"(?>[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|nan|inf))"
_METRICS = rb"(?P<metrics>(?:, [A-Za-z_][\w./-]{0,79}=" + _VALUE + rb"){1,200})"
_FRAME = (
    rb"((?P<head>[^|<=\[\]\r\n\x1b\0]{0,200}\d%\|)[\d# \xe2\x96\x80-\x9f]{0,400}\| ?"
    rb"(?P<n>\d{1,15})/(?P<total>\d{1,15}))"
    rb" \[(?P<elapsed>\d[\d:]{1,12})(?P<rest><[\d:?]{1,12}, +[\d.?]{1,12}(?P<unit>[A-Za-z]{0,12}/[A-Za-z]{1,12})"
    rb"%b\])\s*(?:\x1b\[[AK]\s*)*$"
)
QUICK_FRAME = re.compile(_FRAME.replace(b"%b", _METRICS))
QUICK_PLACE = re.compile(_FRAME.replace(b"%b", b"(?P<metrics>)"))  # one that tells its place alone
_LIMIT = 4096
_STEPS = ("step", "global_step")
_GLUED = b"slurmstepd"

_Key = tuple[bytes, bytes, tuple[bytes, ...]]  # head, unit of the speed, names of the metrics


@dataclass(frozen=True, slots=True)
class QuickFrame:
    """What one frame says. `named_step`: the step among its metrics. `is_plain`: it has none, and tells its place."""

    prefix: Prefix
    bar: Bar
    values: dict[str, float | None]
    named_step: float | None
    is_plain: bool = False


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
        """What a frame that one of the expressions matches says; None where its like must be read in full."""
        key, raw = _parts(match)
        known = self._known.get(key)
        if known is None or (not raw and not int(match["n"])):  # a bar that is begun, maybe anew
            return None
        return _read(known, match, raw)

    def knows(self, match: re.Match[bytes]) -> bool:
        """Whether frames of these words were tried."""
        return _parts(match)[0] in self._known

    def learn(self, match: re.Match[bytes], kind: BarKind, label: str) -> None:
        """Keeps what the words of a frame mean that was read in full: as one of `kind`, of the bar `label`."""
        if len(self._known) >= _LIMIT:
            self._known.clear()
        key, raw = _parts(match)
        is_told = kind is BarKind.METRICS if raw else kind is BarKind.PLAIN
        self._known[key] = _learned(match, key, raw, label) if is_told else None


def _parts(match: re.Match[bytes]) -> tuple[_Key, list[bytes]]:
    """The words of a frame, and its metrics as they are written."""
    parts = match["metrics"].replace(b"=", b", ").split(b", ")
    return (match["head"], match["unit"], tuple(parts[1::2])), parts[2::2]


def _read(known: _Known, match: re.Match[bytes], raw: list[bytes]) -> QuickFrame:
    elapsed = clock_seconds(match["elapsed"].decode("ascii"))
    bar = Bar(known.label, float(match["n"]), float(match["total"]), elapsed, match["rest"].decode("ascii"))
    step = float(raw[known.step_at]) if known.step_at >= 0 else None
    return QuickFrame(known.prefix, bar, {name: float(raw[at]) for at, name in known.kept}, step, is_plain=not raw)


def _learned(match: re.Match[bytes], key: _Key, raw: list[bytes], label: str) -> _Known | None:
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
    known = _Known(prefix, label, kept, steps[0] if steps else -1)
    found = _read(known, match, raw)
    is_same = (found.bar.n, found.bar.total, found.bar.elapsed) == (bar.n, bar.total, bar.elapsed)
    return known if is_same and repr(found.values) == repr(values) else None
