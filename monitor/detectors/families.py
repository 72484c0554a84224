"""The columns of a frame by signal, worked out once a frame: a detector whose signals are absent costs one look-up."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon.monitor.detectors.common import Found, SeriesDetector, in_order
from trainmon.monitor.finding import Finding
from trainmon.monitor.frame import Frame, SignalKey

_memo: tuple[Frame | None, dict[str, list[SignalKey]]] = (None, {})


def families(frame: Frame) -> dict[str, list[SignalKey]]:
    """Signal -> its keys in `frame`."""
    global _memo
    owner, known = _memo
    if owner is not frame:
        known = {}
        for key in frame.columns:
            known.setdefault(key.signal, []).append(key)
        _memo = (frame, known)
    return known


def keys_of(frame: Frame, signals: Iterable[str]) -> list[SignalKey]:
    """The keys of `signals` in `frame`, in order."""
    known = families(frame)
    return sorted(key for signal in signals for key in known.get(signal, ()))


class WatchingDetector(SeriesDetector):
    """A `SeriesDetector` that looks at nothing when none of its signals is there."""

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Feeds every watched series; findings come in the order of the rows."""
        found: Found = []
        self.before(frame, found)
        keys = keys_of(frame, self.watched)
        for key in keys:
            if key not in self.tracks:
                self.tracks[key] = self.make_track(key)
            self.tracks[key].feed(frame, found)
        return in_order(found) if found else ()
