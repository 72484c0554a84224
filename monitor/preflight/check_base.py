"""What every check of preflight is given and gives."""

from __future__ import annotations

from collections.abc import Callable

from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.preflight.frameworks import Framework
from trainmon.tails.quick_dataclass import dataclass

FACTOR = 4.0  # METRICS.md: outside the range by 4x


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known beside the plan. `logged`: signals that a log of the run carries, None without a log."""

    logged: frozenset[str] | None = None
    framework: Framework | None = None


Say = Callable[..., CheckResult]


def teller(name: str, title: str) -> Say:
    """What makes the results of the check ``preflight.NAME``: verdict, what, why, what next."""

    def say(verdict: Verdict, what: str, why: str = "", then: str = "") -> CheckResult:
        return CheckResult(f"preflight.{name}", title, verdict, what, why, then)

    return say


def count(value: float) -> str:
    """A large number in a few characters.

    >>> count(7e9), count(524288.0), count(12.0)
    ('7B', '524k', '12')
    """
    for factor, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"
