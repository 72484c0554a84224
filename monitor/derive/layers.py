"""D11, D14, D15: update ratio, residual angle and block importance, the encoder's share of the gradient."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey

_EPS = 1e-12
_UPDATES = (("update.rms", "param.rms"), ("update.norm", "param.norm"))


class UpdateRule(DerivationRule):
    """D11: RMS(dw) / (RMS(w) + eps), which is the ratio of the norms of the same tensor."""

    def apply(self, draft: DraftLike) -> None:
        """Puts `update.ratio` for every tensor of which update and weight are logged."""
        for update, weight in _UPDATES:
            for key in draft.families.get(update, ()):
                below = draft.columns.get(SignalKey(weight, key.labels))
                if below is not None:
                    values = draft.columns[key] / (below + _EPS)
                    draft.put(SignalKey("update.ratio", key.labels), values, f"{update} / {weight} (D11)")


class ResidualRule(DerivationRule):
    """D14: B = 1 - cos(s, a) and A = arccos(cos(s, a)) / pi, from the cosine or each from the other."""

    def apply(self, draft: DraftLike) -> None:
        """Puts `residual.angle` and `residual.block_importance`."""
        for key in draft.families.get("residual.cosine", ()):
            cosine = np.clip(draft.columns[key], -1.0, 1.0)
            text = "cosine of block input and output (D14)"
            draft.put(SignalKey("residual.block_importance", key.labels), 1.0 - cosine, text)
            draft.put(SignalKey("residual.angle", key.labels), np.arccos(cosine) / np.pi, text)
        for key in draft.families.get("residual.block_importance", ()):
            cosine = np.clip(1.0 - draft.columns[key], -1.0, 1.0)
            draft.put(SignalKey("residual.angle", key.labels), np.arccos(cosine) / np.pi, "block importance (D14)")
        for key in draft.families.get("residual.angle", ()):
            importance = 1.0 - np.cos(draft.columns[key] * np.pi)
            draft.put(SignalKey("residual.block_importance", key.labels), importance, "residual angle (D14)")


class EncoderRule(DerivationRule):
    """D15: S_enc = |g_enc|^2 / |g|^2."""

    def apply(self, draft: DraftLike) -> None:
        """Puts `modality.encoder_grad_share`."""
        norms = draft.column("grad.norm")
        if norms is None:
            return
        for key in draft.families.get("modality.encoder_grad", ()):
            part = draft.columns[key]
            usable = np.isfinite(norms) & np.isfinite(part) & (norms > 0)
            share = np.divide(part, norms, out=np.full(len(part), np.nan), where=usable) ** 2
            text = "squared gradient norm of the encoder over that of the model (D15)"
            draft.put(SignalKey("modality.encoder_grad_share", key.labels), share, text)
