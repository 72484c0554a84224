"""Findings to episodes, episodes to incidents: never one alert a step, nothing lost, the same order every time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor.cause import likely_cause
from trainmon.monitor.detectors.lineage import Restart
from trainmon.monitor.finding import Episode, Finding, Incident, Severity
from trainmon.monitor.fold import Foldable, folded
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.one_cause import joined
from trainmon.monitor.one_rise import told_once
from trainmon.monitor.signals import BY_ID

# Faults of one cause show in several signals within a few logged values of each other.
_TOGETHER_STEPS: Final = 10.0
_TOGETHER_VALUES: Final = 3.0
# Where a level began is only known to within the values it was told from the noise by.
_LEVEL_VALUES: Final = 20.0
_LATER_STEPS: Final = 100.0  # that the leading fault began behind the first one: both are told
_SUDDEN: Final = frozenset(
    ("spike", "co_spike", "drop", "nonfinite", "null_loss", "zero_loss", "vanished", "slow_step")
) | {
    "lr_jump",
    "no_warmup",
    "restart",
    "restart_loss",
    "bad_replay",
}
# For policy optimisation these take the place of the rows that do not apply (METRICS.md, "Words").
_RL_VITAL: Final = ("reward.mean", "policy.kl", "policy.entropy")
_OF_THE_PROCESS: Final = "sys."  # checks of what a new process begins anew: memory, speed
_OUTPUTS: Final = ("output", "logit", "logits", "lm head")
_DOWNWARD: Final = ("drop", "low", "collapse", "vanish", "zero")
_KIND_WORDS: Final = {
    "spike": "spike",
    "level_shift": "level shift",
    "nonfinite": "non-finite values",
    "vanished": "values missing",
    "null_loss": "null",
    "zero_loss": "exactly 0",
    "co_spike": "spike together with the other",
}


class AlertBook:
    """Episodes by id, and those that are open by (check, kind, signal). `copy` is cheap: episodes are frozen.

    What it gives depends on the findings of each detector in their order alone, not on how those of several
    detectors were mixed.
    """

    def __init__(self) -> None:
        self._episodes: dict[str, Episode] = {}
        self._open: dict[tuple[str, str, SignalKey], str] = {}
        self._settled: dict[tuple[str, str, SignalKey, float], str] = {}  # open, by their first step too
        self._recovered, self._left = Foldable(), Foldable()  # the latter: going on as far as is known, and given up

    def copy(self) -> AlertBook:
        """A book that may go on by itself."""
        other = AlertBook()
        other._episodes = dict(self._episodes)
        other._open = dict(self._open)
        other._settled = dict(self._settled)
        other._recovered, other._left = self._recovered.copy(), self._left.copy()
        return other

    def apply(self, check: str, finding: Finding) -> Episode | None:
        """Takes in one finding of the detector `check`; the episode it concerns, None when there is none."""
        address = (check, finding.kind, finding.signal)
        episode = self._episodes.get(self._open.get(address, ""))
        if finding.action == "open":
            if episode is not None and episode.attempt == finding.attempt:
                return self._keep(_grown(episode, finding))
            return self._begin(check, finding)
        settled = (*address, math.nan if finding.first_step is None else finding.first_step)
        if self._settled and settled in self._settled:
            episode = self._episodes[self._settled[settled]]
        if episode is None:
            return None
        if finding.action == "grow":
            return self._keep(_grown(episode, finding))
        if finding.action == "settle":
            self._settled[(*address, episode.first_step)] = self._open.pop(address)
            episode = self._keep(_grown(episode, finding))
            self._fold(self._left, episode)
            return episode
        if self._settled.pop(settled, None) is None:
            del self._open[address]
        if finding.action == "withdraw":
            self._left.drop(episode)
            del self._episodes[episode.id]
            return episode
        return self._recover(replace(episode, recovered=True, what=finding.what or episode.what))

    def _recover(self, episode: Episode) -> Episode:
        self._left.drop(episode)
        self._keep(episode)
        self._fold(self._recovered, episode)
        return episode

    def _fold(self, those: Foldable, episode: Episode) -> None:
        """Nothing more is added to `episode`; of very many such ones the oldest two become one that counts them."""
        pair = those.add(episode)
        if pair is not None and all(name in self._episodes for name in pair):
            older, newer = self._episodes[pair[0]], self._episodes.pop(pair[1])
            for one in (older, newer):
                address = (one.check, one.kind, one.signal, one.first_step)
                if self._settled.get(address) == one.id:
                    del self._settled[address]
            self._keep(folded(older, newer, _lies_farther_out))

    def begin_attempt(self, attempt: int, restart: Restart, chain: int) -> None:
        """A (re)start: what belonged to the process before it is over, what lies beyond the roll-back is left behind.

        `chain`: the attempt at which the training that goes on began; faults of runs before it keep their verdict.
        """
        for episode in tuple(self._episodes.values()):
            if episode.attempt >= attempt or episode.origin != "log":
                continue
            if episode.check.startswith(_OF_THE_PROCESS):
                if not episode.recovered:
                    self._end(episode, "ended with its attempt", episode.severity)
            elif episode.attempt >= chain and restart.leaves_behind(episode.first_step):
                if episode.recovered and episode.severity is not Severity.FAIL:
                    continue
                self._end(
                    episode,
                    f"left behind by the restart at step {restart.step:.15g}",
                    min(episode.severity, Severity.WARN),
                )

    def _end(self, episode: Episode, how: str, severity: Severity) -> None:
        address = (episode.check, episode.kind, episode.signal)
        if self._open.get(address) == episode.id:
            del self._open[address]
        self._settled.pop((*address, episode.first_step), None)
        what = f"{episode.what or episode.kind.replace('_', ' ')} ({how})"
        self._recover(
            replace(episode, severity=severity, recovered=True, what=what, detail={**episode.detail, "ended": how})
        )

    def episodes(self, intervals: Mapping[int, float] | None = None) -> tuple[Episode, ...]:
        """All episodes by attempt and first step, each with its incident.

        `intervals`: attempt -> the usual distance between logged steps, which says how near is together.
        """
        ordered = sorted(
            self._episodes.values(),
            key=lambda episode: (episode.attempt, episode.first_step, episode.check, episode.kind, episode.signal),
        )
        anchors: dict[tuple[int, str], tuple[str, float, float]] = {}
        placed = []
        for episode in ordered:
            place = (episode.attempt, episode.origin)
            interval = (intervals or {}).get(episode.attempt, 1.0)
            values = _TOGETHER_VALUES if episode.kind in _SUDDEN else _LEVEL_VALUES
            reach = max(_TOGETHER_STEPS, values * interval)
            name, anchor, anchor_reach = anchors.get(place, ("", -math.inf, 0.0))
            if not episode.first_step - anchor <= max(reach, anchor_reach):
                name = f"i{episode.id}"
                anchors[place] = (name, episode.first_step, reach)
            placed.append(replace(episode, incident=name))
        return told_once(joined(placed, intervals or {}), intervals or {})

    def _begin(self, check: str, finding: Finding) -> Episode:
        first_step = finding.step if finding.first_step is None else finding.first_step
        name = self._new_id(check, finding, first_step)
        episode = Episode(
            id=name,
            incident="",
            check=check,
            kind=finding.kind,
            signal=finding.signal,
            severity=finding.severity,
            attempt=finding.attempt,
            path=finding.path,
            line=finding.line if finding.first_line is None else finding.first_line,
            first_step=first_step,
            worst_step=finding.step,
            last_step=max(finding.step, first_step),
            worst_value=finding.value,
            first_time=None if math.isnan(finding.time) else finding.time,
            recovered=False,
            what=finding.what,
            origin=finding.origin,
            detail=dict(finding.detail),
        )
        address = (check, finding.kind, finding.signal)
        before = self._episodes.get(self._open.get(address, ""))
        if before is not None:  # of an earlier start: nobody saw it end
            self._fold(self._left, before)
        self._open[address] = name
        return self._keep(episode)

    def _keep(self, episode: Episode) -> Episode:
        self._episodes[episode.id] = episode
        return episode

    def _new_id(self, check: str, finding: Finding, first_step: float) -> str:
        import hashlib  # for runs that have an episode

        words = f"{check}\0{finding.kind}\0{finding.signal}\0{finding.attempt}\0{first_step:.15g}\0{finding.origin}"
        number = 0
        while True:
            text = f"{words}\0{number}" if number else words
            name = hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
            if name not in self._episodes:
                return name
            number += 1


def incidents(episodes: Sequence[Episode], *, rl: bool = False) -> tuple[Incident, ...]:
    """The episodes gathered by their incident, by attempt and first step.

    Those that were acknowledged or are snoozed do not page.
    """
    members: dict[str, list[Episode]] = {}
    for episode in episodes:
        members.setdefault(episode.incident, []).append(episode)
    return tuple(gather(name, group, rl=rl) for name, group in members.items())


def _grown(episode: Episode, finding: Finding) -> Episode:
    worse = _is_worse(episode, finding)
    first_step = episode.first_step if finding.first_step is None else min(episode.first_step, finding.first_step)
    return replace(
        episode,
        severity=max(episode.severity, finding.severity),
        first_step=first_step,
        worst_step=finding.step if worse else episode.worst_step,
        worst_value=finding.value if worse else episode.worst_value,
        last_step=max(episode.last_step, finding.step),
        what=finding.what or episode.what,
        detail={**episode.detail, **finding.detail},
    )


def _is_worse(episode: Episode, finding: Finding) -> bool:
    """Whether the finding's value is farther out than the worst so far."""
    return _is_beyond(episode, finding.value)


def _lies_farther_out(one: Episode, other: Episode) -> bool:
    return _is_beyond(one, other.worst_value)


def _is_beyond(episode: Episode, value: float) -> bool:
    """Whether `value` is farther out than the worst of the episode; non-finite is the worst there is."""
    if not math.isfinite(episode.worst_value):
        return False
    if not math.isfinite(value):
        return True
    signal = BY_ID.get(episode.signal.signal)
    downward = (signal is not None and signal.better == "up") or any(word in episode.kind for word in _DOWNWARD)
    return value < episode.worst_value if downward else value > episode.worst_value


def story_of_end(episodes: Sequence[Episode], attempt: int, step: float) -> str | None:
    """The incident that the end of the job at `step` belongs to: one of the same attempt with a FAIL that was going on.

    The job died of it, or was ended because of it: that is one story and one page.
    """
    going_on = [
        episode
        for episode in episodes
        if episode.attempt == attempt
        and episode.severity is Severity.FAIL
        and episode.last_step >= step - _TOGETHER_STEPS
        and (not episode.recovered or "ended" in episode.detail)
    ]
    return max(going_on, key=lambda episode: (episode.first_step, episode.id)).incident if going_on else None


def gather(name: str, episodes: Sequence[Episode], *, rl: bool = False) -> Incident:
    """The incident `name` of these episodes, at least one."""
    lead = _ordered(episodes)[0]
    return Incident(
        id=name,
        title=_title(episodes),
        severity=max(episode.severity for episode in episodes),
        first_step=min(episode.first_step for episode in episodes),
        last_step=max(episode.last_step for episode in episodes),
        recovered=all(episode.recovered for episode in episodes),
        pages=any(
            not episode.acknowledged and episode.snoozed_until is None and wakes_a_person(episode, rl=rl)
            for episode in episodes
        ),
        episodes=tuple(episode.id for episode in episodes),
        cause=likely_cause(episodes),
        worst_step=lead.worst_step,
    )


def wakes_a_person(episode: Episode, *, rl: bool = False) -> bool:
    """METRICS.md's "page": a FAIL on a P0 row or on ``job.state``; for RL also on reward, KL and entropy."""
    if episode.severity is not Severity.FAIL:
        return False
    if episode.check == "job.state":
        return True
    name = episode.signal.signal
    if rl and name in _RL_VITAL:
        return True
    signal = BY_ID.get(name)
    if signal is None or not signal.row or signal.priority != "P0":
        return False
    return name != "tensor.abs_max" or _is_output(episode.signal)


def _is_output(key: SignalKey) -> bool:
    """Whether a tensor is the model's output: named so, or the only one there is (row 17 is P0 at the output alone)."""
    return not key.labels or dict(key.labels).get("site") in _OUTPUTS


def _title(episodes: Sequence[Episode]) -> str:
    """Plain words: what happened to which signals, and where it began."""
    ordered = _ordered(episodes)
    lead = ordered[0]
    first = min(episodes, key=lambda episode: episode.first_step)
    kind = _kind_words(lead)
    if lead.kind == "drift" and lead.severity is Severity.FAIL:
        kind = "divergence"
    step, began = first.first_step, ""
    if lead.first_step - step > _LATER_STEPS:
        what = _kind_words(first) if first.signal == lead.signal else _plain(first.signal)
        step, began = lead.first_step, f" ({what} since step {step:,.15g})"
    others = dict.fromkeys(_plain(episode.signal) for episode in ordered[1:] if not began or episode is not first)
    others.pop(_plain(lead.signal), None)
    text = f"{_plain(lead.signal)}: {kind} at step {step:,.15g}"
    return text + (f", with {', '.join(others)}" if others else "") + began


def _kind_words(episode: Episode) -> str:
    return _KIND_WORDS.get(episode.kind, episode.kind.replace("_", " "))


def _ordered(episodes: Sequence[Episode]) -> list[Episode]:
    """The leading one first: the worst, then by its row of the table."""
    return sorted(episodes, key=lambda episode: (-episode.severity, _row(episode.signal)))


def _row(key: SignalKey) -> int:
    signal = BY_ID.get(key.signal)
    return signal.row if signal is not None and signal.row else 100


def _plain(key: SignalKey) -> str:
    signal = BY_ID.get(key.signal)
    title = signal.title if signal is not None else key.signal
    return title + "".join(f" {name} {value}" for name, value in key.labels)
