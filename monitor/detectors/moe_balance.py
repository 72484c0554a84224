"""Check moe.balance: expert load, MaxVio and router entropy, D12 and D13."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.common import (
    Found,
    Place,
    finding,
    in_order,
    numbers,
    place,
    result,
    seen,
    tell,
    verdict_of,
)
from trainmon.monitor.detectors.families import keys_of
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.moe_experts import Experts
from trainmon.monitor.detectors.scale_track import ScaleRule, ScaleTrack
from trainmon.monitor.finding import Action, CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds

LASTING_STEPS = 50.0
LASTING_VALUES = 5
COLLAPSE_VALUES = 10
SIGNALS = ("moe.maxvio", "moe.imbalance", "moe.shard_imbalance", "moe.entropy", "moe.load", "moe.router_score")


class MoeBalance(Detector):
    """By layer, against its own level: an average over layers would hide the one that collapses.

    MaxVio twice its level and above 1: WARN; I = MaxVio + 1 of 8 or more, lasting, after it had been below: FAIL. An
    expert under 1% of the mean load for 200 steps: WARN; a tenth of a layer's experts: FAIL. Normalised router
    entropy 0.1 below its level: WARN; below 0.3: FAIL; it usually falls before MaxVio rises. The expert that draws
    twice its own load, and twice the mean, for 50 steps is named (WARN), and so is one whose router score is 10 times
    its level or a tenth for 3 samples.
    """

    id: ClassVar[str] = "moe.balance"
    name: ClassVar[str] = "Expert Balance"
    signals: ClassVar[tuple[str, ...]] = SIGNALS
    order: ClassVar[int] = 24
    triage: ClassVar[str] = "experts"
    formula: ClassVar[str] = (
        "MaxVio = (max_i c_i - mean c) / mean c = I - 1; H_norm = -sum p_i log p_i / log E, by layer"
    )
    source: ClassVar[str] = (
        "METRICS.md D12, D13 and METRICS.md, smallest faults: MaxVio, expert load, router entropy; Deng, Reading "
        "a Pretraining Run (2026)"
    )

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        super().__init__(limits, facts)
        self.tracks: dict[SignalKey, LevelTrack] = {}
        self.scores: dict[SignalKey, ScaleTrack] = {}
        self.floors: dict[SignalKey, _Beyond] = {}
        self.dead: dict[str, Experts] = {}
        self.highest = -math.inf
        self.lowest_entropy = math.inf

    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads what the log has of it."""
        found: Found = []
        for key in keys_of(frame, SIGNALS):
            # I is MaxVio + 1: of the same layer one of them is judged.
            twin = SignalKey("moe.maxvio", key.labels)
            if key.signal == "moe.imbalance" and (twin in frame.columns or twin in self.tracks):
                continue
            if key.signal in ("moe.maxvio", "moe.imbalance", "moe.shard_imbalance"):
                self._violation(key, frame, found)
            elif key.signal == "moe.entropy":
                self._entropy(key, frame, found)
            elif key.signal == "moe.router_score":
                self._score(key, frame, found)
        loads = keys_of(frame, ("moe.load",))
        if loads:
            self._loads(loads, frame, found)
        return in_order(found)

    def _violation(self, key: SignalKey, frame: Frame, found: Found) -> None:
        limits = self.limits
        shift = 1.0 if key.signal == "moe.imbalance" else 0.0
        track = self.tracks.get(key)
        if track is None:
            track = self.tracks[key] = LevelTrack(
                key,
                LevelRule(
                    kind="imbalance",
                    noun=named(key),
                    warn=limits["moe.maxvio.ratio"],
                    fail=math.inf,
                    steps=LASTING_STEPS,
                    values=LASTING_VALUES,
                    floor=limits["moe.maxvio.level"] + shift,
                    keep_on_restart=True,
                ),
            )
            # I of a few experts, all tokens on one, is their number: the limit of 8 is not reached by fewer than 9.
            bar = limits["moe.imbalance.fail"] - (1.0 - shift)
            self.floors[key] = _Beyond(key, "collapse", bar, True, f"{named(key)} reached")
        track.feed(frame, found)
        self.floors[key].feed(frame, found)
        values = numbers(frame, key).values
        if values:
            self.highest = max(self.highest, max(values) - shift)

    def _score(self, key: SignalKey, frame: Frame, found: Found) -> None:
        track = self.scores.get(key)
        if track is None:
            rule = ScaleRule(self.limits["scale.ratio"], int(self.limits["scale.samples"]), kind="router_score")
            track = self.scores[key] = ScaleTrack(key, rule)
        track.feed(frame, found)

    def _entropy(self, key: SignalKey, frame: Frame, found: Found) -> None:
        beyond = self.floors.get(key)
        if beyond is None:
            beyond = self.floors[key] = _Beyond(
                key, "entropy", self.limits["moe.entropy.fail"], False, f"{named(key)} fell to"
            )
            beyond.drop = self.limits["moe.entropy.drop"]
        values = numbers(frame, key).values
        if values:
            self.lowest_entropy = min(self.lowest_entropy, min(values))
        beyond.feed(frame, found)

    def _loads(self, keys: list[SignalKey], frame: Frame, found: Found) -> None:
        layers: dict[str, list[SignalKey]] = {}
        for key in keys:
            layers.setdefault(key.label_dict.get("layer", ""), []).append(key)
        for layer, members in sorted(layers.items()):
            if len(members) >= 2:
                experts = self.dead.setdefault(layer, Experts(layer, self.limits))
                experts.feed(frame, members, found)

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to their last value."""
        levels = [said for track in self.tracks.values() for said in track.finish()]
        floors = [said for beyond in self.floors.values() for said in beyond.finish()]
        scores = [said for _, track in sorted(self.scores.items()) for said in track.finish()]
        return levels + floors + scores + [said for experts in self.dead.values() for said in experts.finish()]

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("moe.maxvio.ratio", "moe.maxvio.level", "moe.imbalance.fail", "moe.dead_share", "moe.entropy.drop")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "raise the balance loss or bias update, add router z-loss, lower the router's learning rate; "
            advice += "go back to a checkpoint before the router collapsed"
            return result(self, verdict, tell(view.episodes), "", advice, used)
        if not seen(view, *SIGNALS):
            if not view.moe:
                return result(self, Verdict.NOT_APPLICABLE, "no experts in this run")
            return result(self, Verdict.NO_DATA, "no expert load in the log; log moe/load or MaxVio")
        parts = []
        if self.highest > -math.inf:
            parts.append(f"highest MaxVio {self.highest:.2f}")
        if self.lowest_entropy < math.inf:
            parts.append(f"lowest router entropy {self.lowest_entropy:.2f}")
        if self.dead:
            parts.append(f"{max(e.most_dead for e in self.dead.values())} experts without load")
        return result(self, Verdict.PASS, ", ".join(parts) or "balanced", used=used)


class _Beyond:
    """A series beyond a fixed limit for 10 values in a row, after it had been on the good side (start-up excluded).

    With `drop`, also below its own level by that much (WARN).
    """

    def __init__(self, key: SignalKey, kind: str, limit: float, up: bool, words: str) -> None:
        self.key, self.kind, self.limit, self.up, self.words = key, kind, limit, up, words
        self.drop: float | None = None
        self.usable = True
        self.good = 0
        self.level: list[float] = []
        self.run: list[Place] = []
        self.soft: list[Place] = []
        self.opened = False
        self.severity = Severity.WARN
        self.what = ""
        self.back = 0
        self.attempt: int | None = None

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        rows, steps, values = numbers(frame, self.key)
        if frame.attempt != self.attempt and rows:
            self.attempt = frame.attempt
            if self.run and steps[0] <= self.run[0].step:
                # A roll-back past the fault leaves it behind.
                self.run, self.soft, self.opened, self.severity = [], [], False, Severity.WARN
        for row, x in zip(rows, values, strict=True):
            # Only the normalised entropy lies in 0..1: one in nats or bits has no fixed floor.
            if self.drop is not None and x > 1.0 + 1e-6:
                self.usable = False
            if not self.usable:
                return
            self._take(frame, row, x, found)

    def _take(self, frame: Frame, row: int, x: float, found: Found) -> None:
        hard = x >= self.limit if self.up else x < self.limit
        soft = False
        if self.drop is not None and len(self.level) >= COLLAPSE_VALUES:
            soft = x < sorted(self.level)[len(self.level) // 2] - self.drop
        if not hard and not soft:
            self.good += 1
            self.level.append(x)
            del self.level[:-100]
            self._calm(frame, row, x, found)
            return
        if self.good < COLLAPSE_VALUES:
            return
        at = place(frame, row, x)
        self.back = 0
        self.run.append(at)
        if hard:
            self.soft.append(at)
        if len(self.run) < COLLAPSE_VALUES:
            return
        severity = Severity.FAIL if len(self.soft) >= COLLAPSE_VALUES else Severity.WARN
        if not self.opened or severity > self.severity:
            self.severity = max(severity, self.severity)
            self.what = f"{self.words} {x:.3g} since step {self.run[0].step:.15g}"
            found.append((row, self._said("grow" if self.opened else "open", at)))
            self.opened = True
        del self.run[1:-COLLAPSE_VALUES]

    def _calm(self, frame: Frame, row: int, x: float, found: Found) -> None:
        self.back += 1
        if self.opened and self.back < COLLAPSE_VALUES:
            return
        if self.opened:
            found.append((row, self._said("grow", self.run[-1])))
            found.append((row, self._said("recover", place(frame, row, x))))
        self.run, self.soft, self.opened, self.severity = [], [], False, Severity.WARN

    def _said(self, action: Action, at: Place) -> Finding:
        return finding(action, self.kind, self.key, self.severity, at, self.what, first=self.run[0])

    def finish(self) -> Iterable[Finding]:
        """An open one reaches to its last value."""
        return [self._said("grow", self.run[-1])] if self.opened and self.run else []
