"""One rise of the loss is told once, by its name: a spike, a level shift, or a drift that became divergence.

The detectors of these are each made to miss nothing, so that a jump that stays is a spike that did not recover, a new
level and, 500 steps on, a drift. Here, from the episodes alone, one of them is made the story; the others stay as
notes (INFO) that name it, in its incident. Nothing louder than the story is ever lowered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict

_LOSS: Final = "loss.train"
_SLOW: Final = ("drift", "climb", "divergence")
# kind -> (steps, logged values) within which its beginning is known
_REACH: Final[dict[str, tuple[float, float]]] = {
    "spike": (10.0, 5.0),
    "level_shift": (100.0, 20.0),
    "drift": (500.0, 100.0),
    "climb": (500.0, 100.0),
    "divergence": (500.0, 100.0),
}
_JUMP: Final = 0.5  # of the rise (in logarithms) that its first value made: a jump; less, and it grew
_TOLD_AS: Final = "told_as"


def told_once(episodes: Sequence[Episode], intervals: Mapping[int, float]) -> tuple[Episode, ...]:
    """`episodes`, by attempt and first step, with one story for each rise of the loss.

    `intervals`: attempt -> the usual distance between logged steps.
    """
    changed: dict[str, Episode] = {}
    for rise in _rises(episodes, intervals):
        story = _story(rise, intervals)
        for one in rise:
            if one is story:
                changed[one.id] = replace(one, incident=rise[0].incident)
            elif _is_same(one, story, intervals):
                changed[one.id] = _muted(one, story, rise[0].incident)
    return tuple(changed.get(one.id, one) for one in episodes) if changed else tuple(episodes)


def with_story(result: CheckResult, episodes: Sequence[Episode]) -> CheckResult:
    """The verdict of a check, whose `episodes` may be told by another one: a PASS then says by which."""
    muted = next((one for one in reversed(episodes) if _TOLD_AS in one.detail), None)
    if muted is None or result.verdict is not Verdict.PASS:
        return result
    return replace(result, what=muted.what, why="")


def _rises(episodes: Sequence[Episode], intervals: Mapping[int, float]) -> Iterator[list[Episode]]:
    """Loud episodes of the loss that begin together, two or more."""
    group: list[Episode] = []
    for one in episodes:
        if not _is_rise(one):
            continue
        if group and not _begins_with(one, group, intervals):
            if len(group) > 1:
                yield group
            group = []
        group.append(one)
    if len(group) > 1:
        yield group


def _is_rise(one: Episode) -> bool:
    is_loud = one.severity >= Severity.WARN and one.origin == "log" and "ended" not in one.detail
    return is_loud and one.signal.signal == _LOSS and one.kind in _REACH


def _begins_with(one: Episode, group: Sequence[Episode], intervals: Mapping[int, float]) -> bool:
    first = group[0]
    if one.attempt != first.attempt or not any(
        not other.recovered or other.last_step >= one.first_step for other in group
    ):
        return False
    return one.first_step - first.first_step <= max(_reach(other, intervals) for other in (*group, one))


def _reach(one: Episode, intervals: Mapping[int, float]) -> float:
    steps, values = _REACH[one.kind]
    return max(steps, values * intervals.get(one.attempt, 1.0))


def _story(rise: Sequence[Episode], intervals: Mapping[int, float]) -> Episode:
    """Which of them tells it best."""
    jumps = [one for one in rise if one.kind == "spike" and _jumped(one)]
    slow = [one for one in rise if one.kind in _SLOW]
    shifts = [one for one in rise if one.kind == "level_shift"]
    if jumps and jumps[0].first_step <= rise[0].first_step + _reach(jumps[0], intervals):
        spike = jumps[0]
        has_settled = not spike.recovered and spike.severity is not Severity.FAIL
        # Values of the new level that lie within the spike's band end the spike, and not the rise.
        beyond = [one for one in (shifts or slow) if _outlasts(one, spike, intervals)]
        return _loudest(beyond or shifts) if (has_settled and shifts) or beyond else spike
    if slow:
        return _loudest(slow)
    return _loudest(shifts or rise)


def _outlasts(one: Episode, spike: Episode, intervals: Mapping[int, float]) -> bool:
    """Whether the rise that `one` tells of went on when `spike`, a part of it, was over."""
    went_on = one.last_step > spike.last_step + _reach(one, intervals)
    return spike.recovered and went_on and one.severity >= spike.severity


def _loudest(some: Sequence[Episode]) -> Episode:
    return max(some, key=lambda one: (one.severity, not one.recovered, -one.first_step))


def _jumped(spike: Episode) -> bool:
    ratio, level = spike.detail.get("ratio"), spike.detail.get("level")
    if not isinstance(ratio, float) or not isinstance(level, float) or not (level > 0 and 1 < ratio < math.inf):
        return True
    worst = spike.worst_value / level
    return not 1 < worst < math.inf or math.log(ratio) >= _JUMP * math.log(worst)


def _is_same(one: Episode, story: Episode, intervals: Mapping[int, float]) -> bool:
    """Whether `one` says no more than `story`, of the same rise."""
    if one.kind == "spike" and story.kind in _SLOW and _jumped(one):
        return False  # a spike on the way up is one of its own
    if one.severity > story.severity and not (one.recovered and story.recovered):
        return False
    if story.recovered and one.last_step > story.last_step + _reach(one, intervals):
        return False  # the story came to an end, and this went on
    return one.first_step >= story.first_step - max(_reach(one, intervals), _reach(story, intervals))


def _muted(one: Episode, story: Episode, incident: str) -> Episode:
    name = {"level_shift": "level shift", "climb": "climb", "drift": "drift"}.get(story.kind, story.kind)
    return replace(
        one,
        severity=Severity.INFO,
        incident=incident,
        what=f"{one.what}: the {name} of step {story.first_step:.15g}",
        detail={**one.detail, _TOLD_AS: story.id},
    )
