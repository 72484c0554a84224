"""What most likely lies behind an incident, from which signals moved and which moved first.

A table of patterns, most telling first; each needs some episodes and may forbid others. Words say "likely": the log
shows what happened together, not why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from trainmon.monitor.amount import named
from trainmon.monitor.finding import Episode, Severity
from trainmon.tails.quick_dataclass import dataclass

_LOSS: Final = "loss.train"
_MIX: Final = ("source.token_share", "modality.token_share")
_GROUPS: Final = ("loss.source", "loss.modality", *_MIX)
_RANKS: Final = ("loss.rank", "loss.worst_rank", "sys.straggler", "sys.rank_step_time", "grad.rank_norm")
_WAITS: Final = ("sys.comm_wait", "sys.data_wait")
_FEW: Final = 2  # groups of which it makes sense to name one
_PROCESS_ENDS: Final = ("oom", "crashed", "node_fail", "hung")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The episodes of an incident, by first step."""

    episodes: tuple[Episode, ...]

    def of(self, *signals: str) -> list[Episode]:
        return [one for one in self.episodes if one.signal.signal in signals]

    def kind(self, *kinds: str) -> list[Episode]:
        return [one for one in self.episodes if one.kind in kinds]

    def family(self, *prefixes: str) -> list[Episode]:
        return [one for one in self.episodes if one.signal.signal.startswith(prefixes)]

    def leads(self, episodes: Sequence[Episode], *others: str) -> bool:
        """Whether one of `episodes` begins before all of the `others`."""
        later = self.of(*others)
        return bool(episodes) and bool(later) and episodes[0].first_step < min(one.first_step for one in later)


def _who(episodes: Sequence[Episode]) -> str:
    """The series of the worst of them in words."""
    return named(max(episodes, key=lambda one: one.severity).signal)


def _is_one(episodes: Sequence[Episode]) -> bool:
    """Whether one rank, source or modality moved (or two): where all do, it is the loss that moved."""
    return len({one.signal.labels for one in episodes if one.signal.labels}) <= _FEW


def _lr(seen: _Seen) -> str:
    jumps = seen.kind("lr_jump")
    if not jumps or len(seen.episodes) == len(jumps):
        return ""
    return f"the learning rate jumped at step {jumps[0].first_step:,.15g}"


def _restart(seen: _Seen) -> str:
    found = seen.kind("restart", "restart_loss", "bad_replay", "rewarm")
    if not found or len(found) == len(seen.episodes):
        return ""
    return f"the restart at step {found[0].first_step:,.15g}: state, data order or warm-up was not taken up as it was"


def _overflow(seen: _Seen) -> str:
    bad = seen.kind("nonfinite", "loss_scale", "skips", "zero", "null")
    if seen.kind("loss_scale", "skips") and len(bad) > 1:
        return "overflow in low precision: the loss scale fell, or steps were skipped, with it"
    if seen.kind("nonfinite") and seen.of("tensor.abs_max"):
        return "overflow: outputs or activations grew beyond their range"
    return ""


def _data(seen: _Seen) -> str:
    groups = seen.of(*_GROUPS)
    if not groups or not (seen.of(_LOSS) or seen.of(*_MIX)):
        return ""
    mix = seen.of(*_MIX)
    if mix:
        return f"a change of the data: {_who(mix)} moved at the same step"
    if not _is_one(groups):
        return ""
    return f"the data of one part: {_who(groups)} moved with the loss; {_look_at(groups)}"


def _part(seen: _Seen) -> str:
    """One source or modality that got worse by itself."""
    groups = [one for one in seen.of("loss.source", "loss.modality") if one.severity is not Severity.INFO]
    if not groups or not _is_one(groups):
        return ""
    return f"the data of one part: {_look_at(groups)}"


def _look_at(groups: Sequence[Episode]) -> str:
    """The source or modality to look at, beside its share of the tokens where that is logged."""
    worst = max(groups, key=lambda one: one.severity)
    who = ", ".join(f"{name} {value}" for name, value in worst.signal.labels)
    share, before = (worst.detail.get(name) for name in ("token_share", "token_share_before"))
    if not isinstance(share, float) or not isinstance(before, float):
        return f"look at {who}, its files since step {worst.first_step:,.15g} and its share of the tokens (not logged)"
    moved = f"stayed at {share:.1%}" if f"{share:.1%}" == f"{before:.1%}" else f"went from {before:.1%} to {share:.1%}"
    return f"look at {who} and its files since step {worst.first_step:,.15g}; its share of the tokens {moved}"


def _routing(seen: _Seen) -> str:
    experts = seen.family("moe.")
    if (
        experts
        and seen.of(_LOSS, "grad.norm", "sys.step_time")
        and not seen.leads(seen.of(_LOSS), experts[0].signal.signal)
    ):
        return f"the router: {_who(experts)} moved with it"
    return ""


def _rank(seen: _Seen) -> str:
    ranks = seen.of(*_RANKS)
    if not _is_one(ranks):
        return ""
    if ranks and any("rank" in one.signal.label_dict for one in ranks):
        worst = max((one for one in ranks if "rank" in one.signal.label_dict), key=lambda one: one.severity)
        return f"rank {worst.signal.label_dict['rank']}: its device, its network or its shard of the data"
    return "one rank: its device, its network or its shard of the data" if ranks else ""


def _waiting(seen: _Seen) -> str:
    waits = seen.of(*_WAITS)
    if waits and seen.of("sys.step_time", "sys.tokens_per_second"):
        return f"{_who(waits)}: steps are slow because they wait"
    return ""


def _gradient_first(seen: _Seen) -> str:
    grads = [one for one in seen.family("grad.") if one.kind != "nonfinite"]
    if grads and seen.leads(grads, _LOSS):
        return "the optimisation: the gradient norm moved before the loss (learning rate, clipping, Adam's beta2)"
    return ""


def _batch(seen: _Seen) -> str:
    if seen.of(_LOSS) and seen.of("grad.norm") and all(one.recovered for one in seen.of(_LOSS, "grad.norm")):
        return "one odd batch, or a learning rate at the edge: loss and gradient norm jumped together and came back"
    return ""


def _filtered(seen: _Seen) -> str:
    if seen.kind("zero_loss") and seen.family("grad."):
        return "the step is no number any more: a trainer that filters NaN writes 0.0"
    return ""


def _both(seen: _Seen) -> str:
    if seen.of(_LOSS) and seen.of("grad.norm"):
        return "the step itself: loss and gradient norm moved together (data of these steps, or the learning rate)"
    return ""


def _memory(seen: _Seen) -> str:
    if seen.kind("oom") and seen.family("sys.peak_memory", "sys.memory"):
        return "memory: it had grown to the card's capacity"
    return ""


def _growing(seen: _Seen) -> str:
    if not seen.kind("memory_creep") or not seen.kind("memory_high"):
        return ""
    return "memory that keeps growing: tensors kept from one step to the next"


def _concentrating(seen: _Seen) -> str:
    falls = seen.kind("entropy")
    floods = [one for one in seen.family("moe.") if one.kind != "entropy"]
    if not falls or not floods or falls[0].first_step > floods[0].first_step:
        return ""
    fell, flooded = falls[0].first_step, floods[0].first_step
    return f"the router: its entropy fell at step {fell:,.15g}, and {_who(floods)} followed at step {flooded:,.15g}"


def _lost(seen: _Seen) -> str:
    if seen.kind(*_PROCESS_ENDS) and seen.kind("nonfinite"):
        return "the loss was no longer a number when the job ended"
    return ""


_PATTERNS: Final[tuple[Callable[[_Seen], str], ...]] = (
    _memory,
    _lost,
    _restart,
    _lr,
    _overflow,
    _filtered,
    _data,
    _rank,
    _routing,
    _concentrating,
    _growing,
    _waiting,
    _gradient_first,
    _batch,
    _both,
    _part,
)


def likely_cause(episodes: Sequence[Episode]) -> str:
    """One clause, or "" where the episodes do not point anywhere. A lone INFO has no cause worth a word."""
    if all(one.severity is Severity.INFO for one in episodes):
        return ""
    seen = _Seen(tuple(sorted(episodes, key=lambda one: (one.first_step, one.check, one.kind, one.signal))))
    return next((words for words in (pattern(seen) for pattern in _PATTERNS) if words), "")
