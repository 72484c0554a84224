"""Check modality.balance: the data mix, the size of media embeddings, and encoders that stop learning (rows 31-33)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar, Literal

from trainmon.monitor.amount import named
from trainmon.monitor.detectors.base import CheckView
from trainmon.monitor.detectors.common import Found, Track, result, seen, tell, verdict_of
from trainmon.monitor.detectors.families import WatchingDetector
from trainmon.monitor.detectors.level_track import LevelRule, LevelTrack
from trainmon.monitor.detectors.scale_track import ScaleRule, ScaleTrack
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey

SHARES = ("modality.token_share", "source.token_share")
SCALE, ENCODER = "modality.scale_ratio", "modality.encoder_grad_share"
WATCHED = (*SHARES, SCALE, ENCODER)
CHANGED = 2.0  # half or twice its share is another mix, which may be meant
STEPS = 100.0
VALUES = 20
LEAST_SHARE = 0.02


class MixTrack:
    """A share of the tokens: half or twice its level is told (INFO), a tenth of it or nothing is a WARN."""

    def __init__(self, key: SignalKey, ratio: float, samples: int) -> None:
        self.gone = ScaleTrack(key, ScaleRule(ratio, samples, up=False, kind="mix_gone"))
        self.changes = (LevelTrack(key, _mix_rule(key, "up")), LevelTrack(key, _mix_rule(key, "down")))

    @property
    def judged(self) -> int:
        """Values that were compared with a level."""
        return self.gone.judged

    def feed(self, frame: Frame, found: Found) -> None:
        """Reads the rows of `frame`."""
        self.gone.feed(frame, found)
        for change in self.changes:
            change.feed(frame, found)

    def finish(self) -> Iterable[Finding]:
        """Open faults reach to their last value."""
        return [*self.gone.finish(), *(said for change in self.changes for said in change.finish())]


def _mix_rule(key: SignalKey, direction: Literal["up", "down"]) -> LevelRule:
    up = direction == "up"
    return LevelRule(
        kind="mix_more" if up else "mix_less",
        noun=named(key),
        warn=CHANGED if up else 1 / CHANGED,
        fail=math.inf if up else 0.0,
        steps=STEPS,
        values=VALUES,
        direction=direction,
        floor=LEAST_SHARE if up else -math.inf,
        keep_on_restart=True,
        worst_severity=Severity.INFO,
    )


class Modality(WatchingDetector):
    """A source or modality that runs dry, embeddings 10x their level or a tenth, an encoder's gradient gone: WARN."""

    id: ClassVar[str] = "modality.balance"
    name: ClassVar[str] = "Data Mix and Modalities"
    signals: ClassVar[tuple[str, ...]] = WATCHED
    watched: ClassVar[tuple[str, ...]] = WATCHED
    order: ClassVar[int] = 37
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = "pi = tokens of the group / tokens; gamma; S_enc = |g_enc|^2 / |g|^2"
    source: ClassVar[str] = "METRICS.md D3, D15, rows 31-33"

    def make_track(self, key: SignalKey) -> Track:
        """One row of the table for one modality."""
        ratio, samples = self.limits["scale.ratio"], int(self.limits["scale.samples"])
        if key.signal in SHARES:
            return MixTrack(key, ratio, samples)
        if key.signal == ENCODER:
            return ScaleTrack(key, ScaleRule(ratio, samples, up=False, kind="encoder_stopped"))
        return ScaleTrack(key, ScaleRule(ratio, samples, drifts=True, kind="media_scale"))

    def result(self, view: CheckView) -> CheckResult:
        """The verdict now."""
        used = ("scale.ratio", "scale.samples")
        verdict = verdict_of(view.episodes)
        if verdict is not Verdict.PASS:
            advice = "see whether a shard ran out or the packing changed; for an encoder, whether it was frozen or its "
            advice += "learning rate is too low beside the model's"
            return result(self, verdict, tell(view.episodes), "each against its own level", advice, used)
        if not seen(view, *WATCHED):
            if not seen(view, "loss.modality", "loss.source"):
                return result(self, Verdict.NOT_APPLICABLE, "one source, one modality, as far as the log tells")
            return result(self, Verdict.NO_DATA, "no token shares; log token counts for each source and modality")
        judged = sum(t.judged for t in self.tracks.values() if isinstance(t, MixTrack | ScaleTrack))
        if not judged:
            return result(self, Verdict.NO_DATA, "too few values to know each share's level")
        mixes = sum(1 for episode in view.episodes if episode.kind in ("mix_more", "mix_less"))
        told = f"; the mix changed {mixes} time{'s' if mixes != 1 else ''}" if mixes else ""
        return result(self, Verdict.PASS, f"{len(self.tracks)} series steady{told}", used=used)
