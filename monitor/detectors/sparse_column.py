"""Whether a column is logged on every so many rows only."""

from __future__ import annotations

from trainmon.monitor.detectors.common import Place


class SparseColumn:
    """Whether the loss is logged on every so many rows of a table that fills the others with NaN or null.

    Told from the first three good values: as many rows without one between the first and the second as between the
    second and the third. `period`: so many (0: the loss is on every row), None while it is not known; until then what
    was bad is held back, with the good values between (named "").
    """

    def __init__(self) -> None:
        self.period: int | None = None
        self.gap = 0
        self.held: list[tuple[str, Place]] = []
        self._gaps: list[int] = []
        self._good = 0

    def is_gap(self, name: str, at: Place) -> bool:
        """One more row without a loss: whether it may be a gap."""
        self.gap += 1
        if self.period is None:
            self.held.append((name, at))
            return True
        return self.gap <= self.period

    def good(self, at: Place) -> list[tuple[str, Place]]:
        """A good value; gives what was held back and were no gaps."""
        gap, self.gap = self.gap, 0
        if self.period is not None:
            return []
        self._good += 1
        self.held.append(("", at))
        if self._good == 1:
            return []
        self._gaps.append(gap)
        if not gap or len(set(self._gaps)) > 1:
            return self.dense()
        if len(self._gaps) == 2:
            self.period, self.held = gap, []
        return []

    def dense(self) -> list[tuple[str, Place]]:
        """The loss is on every row, as far as can be told: gives what was held back."""
        if self.period is None:
            self.period = 0
        held, self.held = self.held, []
        return held
