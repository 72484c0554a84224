"""Check batch.ratio: tokens per batch against model size and compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import finite, number_fact, result
from trainmon.monitor.detectors.recipes import critical_batch_tokens, recipe_batch_tokens
from trainmon.monitor.finding import CheckResult, Finding, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LOSS = SignalKey("loss.train")
PRETRAINING = 5.0  # nats: a run that begins lower goes on from trained weights


class BatchRatio(Detector):
    """Outside the range of recipes and critical batch by 4x: WARN, as advice."""

    id: ClassVar[str] = "batch.ratio"
    name: ClassVar[str] = "Batch Size Ratio"
    signals: ClassVar[tuple[str, ...]] = ("batch.tokens", "batch.size", "batch.seq_length")
    order: ClassVar[int] = 4
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = (
        "tokens per batch / the range that recipes and critical-batch fits give for the model's size and compute"
    )
    source: ClassVar[str] = "METRICS.md, Batch Size Ratio; training-stability-monitor, Batch Size Ratio"

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.last: dict[str, float] = {}
        self.first_loss: float | None = None
        self.last_loss: float | None = None

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Keeps the newest batch and the first and last loss."""
        for name in self.signals:
            values = finite(frame, SignalKey(name)).values
            if len(values):
                self.last[name] = float(values[-1])
        values = finite(frame, LOSS).values
        if len(values):
            self.first_loss = float(values[0]) if self.first_loss is None else self.first_loss
            self.last_loss = float(values[-1])
        return ()

    def tokens(self) -> float | None:
        """Tokens a batch; None when it is not known."""
        known = self.last.get("batch.tokens") or number_fact(self.facts, "tokens_per_batch")
        if known:
            return known
        size = self.last.get("batch.size") or number_fact(self.facts, "batch_size")
        length = self.last.get("batch.seq_length") or number_fact(self.facts, "seq_length")
        return size * length if size and length else None

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        if view.rl:
            return result(self, Verdict.NOT_APPLICABLE, "recipes for tokens a batch are those of pretraining")
        tokens = self.tokens()
        parameters = number_fact(self.facts, "active_parameters") or number_fact(self.facts, "parameters")
        missing = [
            name
            for name, value in (("tokens per batch", tokens), ("the number of parameters", parameters))
            if not value
        ]
        if missing:
            return result(self, Verdict.NO_DATA, f"{' and '.join(missing)} not in log or config")
        if tokens is None or parameters is None:
            return result(self, Verdict.NO_DATA, "batch or model size unknown")
        if self.first_loss is not None and self.first_loss < PRETRAINING:
            return result(self, Verdict.NOT_APPLICABLE, "recipes for tokens a batch are those of pretraining")
        low, high = recipe_batch_tokens(parameters)
        if self.last_loss is not None and self.last_loss > 0.5:
            critical = critical_batch_tokens(self.last_loss)
            low, high = min(low, critical), max(high, critical)
        factor = self.limits["batch.factor"]
        why = f"recipes and critical-batch fits give {low:,.0f} to {high:,.0f} tokens for {parameters:,.0f} parameters"
        what = f"{tokens:,.0f} tokens a batch"
        used = ("batch.factor",)
        if low / factor <= tokens <= high * factor:
            return result(self, Verdict.PASS, what, why, used=used)
        side = "small" if tokens < low else "large"
        other = low if tokens < low else high
        return result(
            self,
            Verdict.WARN,
            f"{what} is {side} for this model",
            why,
            f"accumulate gradients to about {other:,.0f} tokens" if side == "small" else f"try {other:,.0f} tokens",
            used,
            advisory=True,
        )
