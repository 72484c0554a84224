"""What the counter that serves as a run's step counts: steps, or the tokens or samples seen so far."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from trainmon.tails.steps import WEAK_RANK, step_rank, words_of

STEP_COUNTS: Final = "step_counts"  # the key of a `Fact`, there only where steps are not what is counted
Unit = Literal["steps", "tokens", "samples"]
_WORDS: Final[dict[Unit, frozenset[str]]] = {
    "tokens": frozenset(("token", "tokens")),
    "samples": frozenset(("sample", "samples", "example", "examples")),
}


@lru_cache(maxsize=256)
def unit_of(step_key: str) -> Unit:
    """What the log's own name of the step says that it counts.

    >>> unit_of("tokens_seen"), unit_of("train/consumed_samples"), unit_of("global_step"), unit_of("epoch")
    ('tokens', 'samples', 'steps', 'steps')
    """
    if (step_rank(step_key) or 0.0) < WEAK_RANK:
        return "steps"
    words = words_of(step_key)
    return next((unit for unit, names in _WORDS.items() if not names.isdisjoint(words)), "steps")


def counted(facts: Mapping[str, float | str]) -> Unit:
    """What the run's steps count, by its facts."""
    told = facts.get(STEP_COUNTS)
    return next((unit for unit in _WORDS if unit == told), "steps")
