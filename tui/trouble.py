"""What a run's trouble is called where there is room for a few words: which kind, since which step."""

from __future__ import annotations

import math

from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot, State, TriageStep
from trainmon.tails.text import printable
from trainmon.tui import numbers

# Kinds that say more than the name of the signal does.
_KINDS = {
    "nonfinite": "NaN",
    "divergence": "diverged",
    "spike": "spike",
    "level_shift": "shift",
    "drift": "drift",
    "vanished": "gone",
    "plateau": "flat",
}
_SHORT = {
    "gradient norm": "grad norm",
    "straggler ratio": "slow rank",
    "policy entropy": "entropy",
    "memory share": "memory",
    "peak memory": "memory",
}
_LONGEST = 30
# That a run goes on is no trouble: then its restarts are.
_GOING_ON = frozenset({State.STARTING, State.RUNNING, State.CHECKPOINTING, State.EVALUATING, State.UNKNOWN})


def state_words(state: State) -> str:
    """A state as people write it.

    >>> state_words(State.TIME_LIMIT), state_words(State.OOM)
    ('time limit', 'OOM')
    """
    return "OOM" if state is State.OOM else state.value.replace("_", " ")


def leading(run: RunSnapshot, why: TriageStep) -> Episode | None:
    """The episode behind the step that explains the run: open before recovered, the worst, the first of them."""
    behind = [one for one in run.episodes if one.id in why.episodes]
    return min(behind, key=lambda one: (one.recovered, -one.severity, one.first_step), default=None)


def trouble_words(run: RunSnapshot, why: TriageStep) -> str:
    """The kind of trouble and the step it began at, "loss NaN @3083"; of a job only what became of it: the step that
    it came to stands beside it."""
    if why.id == "job":
        return "job" if run.state in _GOING_ON else state_words(run.state)
    one = leading(run, why)
    if one is None:
        return why.id.replace("_", " ")
    known = BY_ID.get(one.signal.signal)
    name = printable(known.title if known is not None else one.signal.signal, _LONGEST).removeprefix("training ")
    name = _SHORT.get(name, name)
    kind = "diverged" if one.kind == "drift" and one.severity is Severity.FAIL else _KINDS.get(one.kind, "")
    kind = kind if one.signal.signal == "loss.train" or one.kind == "nonfinite" else ""
    at = "" if math.isnan(one.first_step) else f" @{numbers.step(one.first_step)}"
    return f"{name} {kind}".rstrip() + at


def reason_words(why: TriageStep, run: RunSnapshot) -> str:
    """What was found, without the words that stand before it anyway."""
    ahead = f"{run.state.value}: " if why.id == "job" else "loss "
    return why.what.removeprefix(ahead)


def found_words(run: RunSnapshot, why: TriageStep) -> str:
    """Which step of the walk found what, said once: a state that stands before it is not said again."""
    found = reason_words(why, run) if why.id == "job" else why.what
    return found if found.lower().startswith(why.title.lower()) else f"{why.title}: {found}"
