"""Losses in a row that are no use: not finite, null, 0.0 or gone."""

from __future__ import annotations

from trainmon.monitor.detectors.common import Found, Place, finding
from trainmon.monitor.finding import Action, Severity
from trainmon.monitor.frame import SignalKey

LOSS = SignalKey("loss.train")
FILTERED = "exactly 0.0 beside a gradient norm that is not finite: a non-finite loss that the trainer filtered"


class BadRun:
    """Bad values in a row: opened at `open_at`, a FAIL at `fail_at`."""

    def __init__(
        self, kind: str, open_at: int, fail_at: float, key: SignalKey = LOSS, noun: str = "loss", words: str = ""
    ) -> None:
        self.said = words  # in place of those of its kind
        self.key, self.noun = key, noun
        self.kind, self.open_at, self.fail_at = kind, open_at, fail_at
        self.count = 0
        self.first: Place | None = None
        self.last: Place | None = None
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""

    @staticmethod
    def words(x: float) -> str:
        """The value as the log means it."""
        if x == 0.0:
            return FILTERED
        return "NaN" if x != x else ("Inf" if x > 0 else "-Inf")

    def hit(self, at: Place, row: int, found: Found) -> None:
        """One more bad value."""
        if not self.count:
            self.first = at
            self.severity = Severity.WARN
        self.count += 1
        self.last = at
        if self.count < self.open_at:
            return
        louder = self.count == self.fail_at
        if self.count >= self.fail_at:
            self.severity = Severity.FAIL
        first = self.first or at
        if not self.opened or louder:
            self.what = self._what(first, at)
            action: Action = "grow" if self.opened else "open"
            found.append((row, finding(action, self.kind, self.key, self.severity, at, self.what, first=first)))
            self.opened = True

    def so_far(self) -> str:
        """In words, up to the last bad value."""
        return self.what if self.first is None or self.last is None else self._what(self.first, self.last)

    def _what(self, first: Place, at: Place) -> str:
        lasting = f", {self.count:,} records in a row" if self.count > 1 else ""
        if at.value == 0.0 and self.open_at == 1:
            return f"loss {'from' if lasting else 'at'} step {first.step:.15g} is {FILTERED}{lasting}"
        name = {
            "nonfinite": f"{self.noun} is {self.words(at.value)}",
            "null_loss": "loss is null",
            "zero_loss": "loss is exactly 0.0 beside a gradient norm that is not finite or not there",
            "vanished": "loss is no longer logged while the other numbers of a step are",
        }[self.kind]
        return f"{self.said or name} from step {first.step:.15g}{lasting}"

    def end(self, at: Place, row: int, found: Found) -> None:
        """A good value."""
        if self.opened:
            if self.last is not None and self.count > 1:
                self.what = self.so_far()
                found.append(
                    (row, finding("grow", self.kind, self.key, self.severity, self.last, self.what, first=self.first))
                )
            found.append((row, finding("recover", self.kind, self.key, self.severity, at, self.what, first=self.first)))
        self.forget()

    def forget(self) -> None:
        """Begins anew."""
        self.count = 0
        self.opened = False
        self.first = self.last = None
