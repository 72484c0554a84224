"""D16 and D17: perplexity, bits per byte and what media are worth, from what evaluations log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike, number_fact
from trainmon.monitor.derive.groups import ratio
from trainmon.monitor.frame import SignalKey

_LARGEST_NLL: Final = 50.0  # nats a token: above, it is a sum over tokens or batches, whose exp means nothing


class EvaluationRule(DerivationRule):
    """D16: PPL = exp(NLL); BPB = sum of losses / (bytes * log 2) = NLL * tokens / bytes / log 2.

    Tokens and bytes stand beside the loss in the log, or the facts tell the bytes of a token (`bytes_per_token`).
    """

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts

    def apply(self, draft: DraftLike) -> None:
        """Puts `eval.perplexity`, `eval.nll` and `eval.bits_per_byte`."""
        for key in draft.families.get("eval.loss_sum", ()):
            tokens = draft.columns.get(SignalKey("eval.tokens", key.labels))
            width = draft.columns.get(SignalKey("eval.bytes", key.labels))
            if tokens is not None:
                nll = ratio(draft.columns[key], tokens)
                draft.put(SignalKey("eval.nll", key.labels), nll, "sum of held-out losses over tokens (D16)")
            if width is not None:
                bits = ratio(draft.columns[key], width) / np.log(2.0)
                text = "sum of held-out losses / bytes / log 2 (D16)"
                draft.put(SignalKey("eval.bits_per_byte", key.labels), bits, text)
        for key in [key for key in draft.columns if key.signal == "eval.nll"] if self._has_nll(draft) else ():
            self._of_nll(draft, key)
        for key in draft.families.get("eval.perplexity", ()):
            values = draft.columns[key]
            nll = np.log(values, out=np.full(len(values), np.nan), where=np.isfinite(values) & (values > 0))
            draft.put(SignalKey("eval.nll", key.labels), nll, "log of the perplexity (D16)")

    @staticmethod
    def _has_nll(draft: DraftLike) -> bool:
        return "eval.nll" in draft.families or "eval.loss_sum" in draft.families

    def _of_nll(self, draft: DraftLike, key: SignalKey) -> None:
        nll = draft.columns[key]
        fits = np.where(nll < _LARGEST_NLL, nll, np.nan)
        draft.put(SignalKey("eval.perplexity", key.labels), np.exp(fits), "exp(held-out loss) (D16)")
        bits = SignalKey("eval.bits_per_byte", key.labels)
        tokens = draft.columns.get(SignalKey("eval.tokens", key.labels))
        size = draft.columns.get(SignalKey("eval.bytes", key.labels))
        width = number_fact(self._facts, "bytes_per_token")
        if tokens is not None and size is not None:
            draft.put(bits, nll * ratio(tokens, size) / np.log(2.0), "held-out loss * tokens / bytes / log 2 (D16)")
        elif width is not None:
            draft.put(bits, nll / width / np.log(2.0), "held-out loss / bytes / log 2 (D16)")


class MediaRule(DerivationRule):
    """D17: media gain = score with media - score without."""

    def apply(self, draft: DraftLike) -> None:
        """Puts `eval.media_gain`."""
        for key in draft.families.get("eval.with_media", ()):
            without = draft.columns.get(SignalKey("eval.without_media", key.labels))
            if without is not None:
                gain = draft.columns[key] - without
                draft.put(SignalKey("eval.media_gain", key.labels), gain, "score with media - score without (D17)")
