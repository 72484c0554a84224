"""Faults that follow from one another much later than a few steps, and are one story: one incident, told once.

Memory that creeps up stands high in the end; a router that concentrates floods a few experts some hundred steps on.
Where the one is still going on when the other begins, the incident of the second is the incident of the first.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import Episode

_MEMORY: Final = frozenset(("memory_creep", "memory_high"))
_ROUTER_STEPS, _ROUTER_VALUES = 1000.0, 100.0  # within which experts follow their router
_REMEMBERED: Final = 8  # of one family

_Family = tuple[str, int, str, str]


def joined(episodes: Sequence[Episode], intervals: Mapping[int, float]) -> tuple[Episode, ...]:
    """`episodes`, by attempt and first step, with the incidents that are one story joined under the earlier's name.

    `intervals`: attempt -> the usual distance between logged steps.
    """
    known: dict[_Family, deque[Episode]] = {}
    roots: dict[str, str] = {}
    for one in episodes:
        family = _family(one)
        if family is None:
            continue
        before = known.setdefault(family, deque(maxlen=_REMEMBERED))
        earlier = next((other for other in before if _goes_on(other, one, intervals)), None)
        before.append(one)
        if earlier is not None:
            first, second = _root(roots, earlier.incident), _root(roots, one.incident)
            if first != second:
                roots[second] = first
    if not roots:
        return tuple(episodes)
    return tuple(replace(one, incident=_root(roots, one.incident)) for one in episodes)


def _root(roots: Mapping[str, str], name: str) -> str:
    while name in roots:
        name = roots[name]
    return name


def _family(one: Episode) -> _Family | None:
    """What it may be one story with: memory; the router and the experts of one layer, or of the model as a whole."""
    if one.check == "sys.memory" and one.kind in _MEMORY:
        return "memory", one.attempt, one.origin, ""
    if one.check.startswith("moe."):
        return "router", one.attempt, one.origin, one.signal.label_dict.get("layer", "")
    return None


def _goes_on(earlier: Episode, one: Episode, intervals: Mapping[int, float]) -> bool:
    """Whether `earlier` was still there when `one` began, and near enough to be what led to it."""
    if earlier.recovered and earlier.last_step < one.first_step:
        return False
    reach = math.inf
    if one.kind not in _MEMORY:
        reach = max(_ROUTER_STEPS, _ROUTER_VALUES * intervals.get(one.attempt, 1.0))
    return one.first_step - earlier.first_step <= reach
