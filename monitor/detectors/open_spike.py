"""A spike that is under way."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from trainmon.monitor.detectors.common import Place, finding
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.stats.local_level import LocalLevel
from trainmon.tails.quick_dataclass import dataclass

RECOVERED_OF = 10
RECOVERED = 8


@dataclass(slots=True)
class OpenSpike:
    """A spike that has not recovered.

    `usual`: what it was told against, `band`: the highest u that counts as back inside.
    """

    first: Place
    usual: LocalLevel
    band: float
    severity: Severity
    worst: float
    last: Place
    what: str
    out: int = 1
    values: int = 1
    failed: bool = False
    is_meant: bool = False
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=RECOVERED_OF))
    above: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    @property
    def is_back(self) -> bool:
        """Whether it has recovered: enough of the last values lie inside the band."""
        return sum(self.recent) >= RECOVERED

    def said(self, action: Action, key: SignalKey, at: Place) -> Finding:
        """The finding that tells of it at `at`."""
        return finding(action, "spike", key, self.severity, at, self.what, first=self.first)
