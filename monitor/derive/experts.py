"""D12 and D13: expert balance from expert loads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike, number_fact
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import FloatArray

_TEXT = "from the load of each expert"


class ExpertRule(DerivationRule):
    """By layer and for the worst layer: an average over layers would hide the one that collapses.

    MaxVio = (max_i c_i - mean c) / mean c = I - 1, H_norm = -sum p_i log p_i / log E, layer by layer.

    A layer that no token reached on a row is missing there, not 0. Without a layer label the loads are one layer's.
    The same over the loads of expert-parallel shards, logged, or added from those of their experts where the facts
    tell the number of shards (experts in order, as many on each).
    """

    def __init__(self, facts: Mapping[str, float | str]) -> None:
        self._facts = facts

    def apply(self, draft: DraftLike) -> None:
        """Puts `moe.maxvio`, `moe.imbalance`, `moe.shard_imbalance` and `moe.entropy`."""
        if "moe.load" in draft.families:
            self._experts(draft)
        shards = self._shards(draft)
        if shards:
            _put_worst(draft, "moe.shard_imbalance", shards, "MaxVio over the shards' loads (D12)")

    def _experts(self, draft: DraftLike) -> None:
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

    def _shards(self, draft: DraftLike) -> dict[str, FloatArray]:
        """Layer -> MaxVio over its shards."""
        layers: dict[str, dict[str, FloatArray]] = {}
        for key in draft.families.get("moe.shard_load", ()):
            labels = dict(key.labels)
            if "shard" in labels:
                layers.setdefault(labels.get("layer", ""), {})[labels["shard"]] = draft.columns[key]
        if not layers:
            layers = self._shards_of_experts(draft)
        tables = {layer: np.array(list(shards.values())) for layer, shards in layers.items() if len(shards) > 1}
        return {layer: balance(table)[0] for layer, table in tables.items()}

    def _shards_of_experts(self, draft: DraftLike) -> dict[str, dict[str, FloatArray]]:
        count = number_fact(self._facts, "expert_parallel_size")
        if count is None or count < 2 or "moe.load" not in draft.families:
            return {}
        layers: dict[str, list[tuple[int, FloatArray]]] = {}
        for key in draft.families["moe.load"]:
            labels = dict(key.labels)
            if labels.get("expert", "").isdigit():
                layers.setdefault(labels.get("layer", ""), []).append((int(labels["expert"]), draft.columns[key]))
        found: dict[str, dict[str, FloatArray]] = {}
        for layer, experts in layers.items():
            if len(experts) % int(count):
                continue
            experts.sort(key=lambda pair: pair[0])
            each = len(experts) // int(count)
            loads = np.array([load for _, load in experts]).reshape(int(count), each, -1)
            found[layer] = {str(shard): loads[shard].sum(axis=0) for shard in range(int(count))}
        return found


def _put_worst(draft: DraftLike, signal: str, layers: Mapping[str, FloatArray], text: str) -> None:
    for layer, values in layers.items():
        draft.put(SignalKey(signal, (("layer", layer),) if layer else ()), values, text)
    if "" not in layers:
        draft.put(SignalKey(signal), np.fmax.reduce(list(layers.values())), f"largest over the layers of {text}")


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
