"""D1 and D3: means from sums of token losses and counts of tokens, over ranks and by group; token shares."""

from __future__ import annotations

import numpy as np

from trainmon.monitor.derive.base import DerivationRule, DraftLike
from trainmon.monitor.derive.ranks import RankStep
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")
_SUM, _COUNT, _MEAN = "loss.sum", "loss.tokens", "loss.rank"
_FEWEST = 2  # ranks of which one can be the worst
_GROUPS = (("source", "loss.source", "source.token_share"), ("modality", "loss.modality", "modality.token_share"))


class GlobalMeanRule(DerivationRule):
    """D1: the sum of the masked token losses of all ranks over the number of valid tokens of all ranks.

    From the ranks' means only together with the ranks' counts: without counts it is `RankMeanRule`'s. A rank of which
    sum or count is missing at a step is left out of both.
    """

    def __init__(self) -> None:
        self._steps = {family: RankStep() for family in (_SUM, _COUNT, _MEAN)}

    def new_attempt(self) -> None:
        """What ranks said of a step of the attempt before is void."""
        for step in self._steps.values():
            step.clear()

    def apply(self, draft: DraftLike) -> None:
        """Puts `loss.train`, and the ranks' own means where they tell sums and counts, nats."""
        if not draft.wants(LOSS) and draft.families.keys().isdisjoint((_SUM, _MEAN)):
            return
        # Each is heard wherever it stands: a rank's sum and its count may be in different rows of a step.
        counts, sums, means = (self._by_rank(draft, family) for family in (_COUNT, _SUM, _MEAN))
        if _COUNT not in draft.families:
            return
        self._own_means(draft, sums, counts, means)
        whole = draft.columns.get(SignalKey(_SUM)), draft.columns.get(SignalKey(_COUNT))
        if whole[0] is not None and whole[1] is not None:
            draft.put(LOSS, ratio(whole[0], whole[1]), "sum of token losses over valid tokens (D1)")
            return
        for rank, mean in means.items():
            if rank in counts:
                own = mean * counts[rank]
                sums[rank] = np.where(np.isnan(sums[rank]), own, sums[rank]) if rank in sums else own
        pairs = [(sums[rank], counts[rank]) for rank in sums if rank in counts]
        if pairs:
            total, tokens = add_pairs(pairs)
            draft.put(LOSS, ratio(total, tokens), "token losses of all ranks over their valid tokens (D1)")

    @staticmethod
    def _own_means(
        draft: DraftLike, sums: dict[str, FloatArray], counts: dict[str, FloatArray], means: dict[str, FloatArray]
    ) -> None:
        """`loss.rank` of each rank that tells its sum and its count, and the highest of two or more (D2)."""
        own = {rank: ratio(sums[rank], counts[rank]) for rank in sums if rank in counts and rank not in means}
        for rank, values in own.items():
            draft.put(
                SignalKey(_MEAN, (("rank", rank),)), values, "token losses of the rank over its valid tokens (D1)"
            )
        if len(own) < _FEWEST or means:
            return
        table = np.array(list(own.values()))
        many = (~np.isnan(table)).sum(axis=0) >= _FEWEST
        highest = np.where(many, np.where(np.isnan(table), -np.inf, table).max(axis=0), np.nan)
        draft.put(SignalKey("loss.worst_rank"), highest, "maximum over the ranks of loss.rank (D2)")

    def _by_rank(self, draft: DraftLike, family: str) -> dict[str, FloatArray]:
        keys = [key for key in draft.families.get(family, ()) if _only(key, "rank")]
        if not keys:
            return {}
        named = self._steps[family].gather(draft, keys)
        return {dict(key.labels)["rank"]: values for key, values in named.items()}


class GroupRule(DerivationRule):
    """D3: loss sums and token counts of a source or modality added over the ranks, then divided; its token share.

    Ranks that write rows of their own are taken together at the last rank's row, as in D2.
    """

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str, str], RankStep] = {}

    def new_attempt(self) -> None:
        """What ranks said of a step of the attempt before is void."""
        for step in self._steps.values():
            step.clear()

    def apply(self, draft: DraftLike) -> None:
        """Puts `loss.source`, `loss.modality` and their shares of the tokens."""
        for label, loss, share in _GROUPS:
            counts, all_sums = self._told(draft, _COUNT, label), self._told(draft, _SUM, label)
            if not counts:
                continue
            for name, sums in all_sums.items():
                pairs = [(values, counts[name][rank]) for rank, values in sums.items() if rank in counts.get(name, {})]
                if pairs:
                    total, tokens = add_pairs(pairs)
                    text = f"token losses of the {label} over its tokens, added over ranks (D3)"
                    draft.put(SignalKey(loss, ((label, name),)), ratio(total, tokens), text)
            self._shares(draft, label, share, counts)

    @staticmethod
    def _shares(draft: DraftLike, label: str, share: str, counts: dict[str, dict[str, FloatArray]]) -> None:
        tokens = {name: add_pairs([(part, part) for part in ranks.values()])[0] for name, ranks in counts.items()}
        table = np.array(list(tokens.values()))
        whole = np.where(np.isnan(table), 0.0, table).sum(axis=0)
        whole[(~np.isnan(table)).sum(axis=0) < 2] = np.nan  # one group alone tells no share
        for name, own in tokens.items():
            draft.put(SignalKey(share, ((label, name),)), ratio(own, whole), f"tokens by {label} (D3)")

    def _told(self, draft: DraftLike, family: str, label: str) -> dict[str, dict[str, FloatArray]]:
        """Group -> rank ("" where the log does not tell ranks apart) -> its values at complete steps."""
        keys: dict[str, list[SignalKey]] = {}
        for key in draft.families.get(family, ()):
            name = dict(key.labels).get(label)
            if name is not None:
                keys.setdefault(name, []).append(key)
        found: dict[str, dict[str, FloatArray]] = {}
        for name, members in keys.items():
            ranked = [key for key in members if "rank" in dict(key.labels)]
            if not ranked:
                found[name] = {"": draft.columns[members[0]]}
                continue
            step = self._steps.setdefault((family, label, name), RankStep())
            named = step.gather(draft, ranked)
            found[name] = {dict(key.labels)["rank"]: values for key, values in named.items()}
        return found


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """(n,) above / below; NaN where there is nothing to divide by."""
    divided: FloatArray = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return divided


def add_pairs(pairs: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Sums and counts of several ranks added: only those of ranks that told both at a row. NaN where none did.

    >>> sums, counts = add_pairs([(np.array([6.0, 6.0]), np.array([2.0, 2.0])), (np.array([1.0, 9.0]),
    ...     np.array([2.0, np.nan]))])
    >>> (sums / counts).tolist()
    [1.75, 3.0]
    """
    sums, counts = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    known = ~np.isnan(sums) & ~np.isnan(counts)
    told = known.any(axis=0)
    total = np.where(known, sums, 0.0).sum(axis=0)
    tokens = np.where(known, counts, 0.0).sum(axis=0)
    return np.where(told, total, np.nan), np.where(told, tokens, np.nan)


def _only(key: SignalKey, label: str) -> bool:
    return len(key.labels) == 1 and key.labels[0][0] == label
