"""D12 and D13: expert balance from expert loads."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.derive_base import DerivationRule, DraftLike
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import FloatArray

_TEXT = "from the load of each expert"


class ExpertRule(DerivationRule):
    """MaxVio = (max_i c_i - mean c) / mean c = I - 1, H_norm = -sum p_i log p_i / log E, layer by layer.

    A layer that no token reached on a row is missing there, not 0. Without a layer label the loads are one layer's.
    """

    def apply(self, draft: DraftLike) -> None:
        """Puts `moe.maxvio`, `moe.imbalance` and `moe.entropy` a layer, and the worst layer's without label."""
        layers: dict[str, list[SignalKey]] = {}
        for key in draft.families.get("moe.load", ()):
            labels = dict(key.labels)
            if "expert" in labels:
                layers.setdefault(labels.get("layer", ""), []).append(key)
        worst: list[FloatArray] = []
        for layer, keys in layers.items():
            if len(keys) < 2:
                continue
            table = np.array([draft.columns[key] for key in keys])
            violation, entropy = balance(table)
            worst.append(violation)
            labels_of = (("layer", layer),) if layer else ()
            draft.put(SignalKey("moe.maxvio", labels_of), violation, f"{_TEXT} (D12)")
            draft.put(SignalKey("moe.imbalance", labels_of), violation + 1.0, f"{_TEXT} (D12)")
            draft.put(SignalKey("moe.entropy", labels_of), entropy, f"{_TEXT} (D13)")
        if worst and "" not in layers:
            highest = np.fmax.reduce(worst)
            draft.put(SignalKey("moe.maxvio"), highest, f"largest over the layers, {_TEXT} (D12)")
            draft.put(SignalKey("moe.imbalance"), highest + 1.0, f"largest over the layers, {_TEXT} (D12)")


def balance(loads: FloatArray) -> tuple[FloatArray, FloatArray]:
    """MaxVio and H_norm of `loads` (experts, rows), each (rows,); NaN where a row has no load.

    >>> violation, entropy = balance(np.array([[3.0, 1.0], [1.0, 1.0]]))
    >>> violation.tolist(), entropy.round(3).tolist()
    ([0.5, 0.0], [0.811, 1.0])
    """
    known = ~np.isnan(loads)
    many = known.sum(axis=0)
    loads = np.where(known, loads, 0.0)
    total = loads.sum(axis=0)
    usable = (many >= 2) & (total > 0) & np.isfinite(total) & (loads >= 0).all(axis=0)
    share = np.divide(loads, total, out=np.zeros_like(loads), where=usable)
    violation = np.where(usable, share.max(axis=0) * many - 1.0, np.nan)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy = -(share * logs).sum(axis=0) / np.log(np.maximum(many, 2))
    return violation, np.where(usable, entropy, np.nan)
