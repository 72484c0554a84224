"""Looking at a part of a judgement: some checks, what happened since a step or a time, only what is fresh."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase

import numpy as np

from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict, reason_without_trouble, worst
from trainmon.monitor.job.judging import duration
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.time_span import SPAN, seconds
from trainmon.tails.quick_dataclass import dataclass

CHECK_IDS: tuple[str, ...] = (*dict.fromkeys(detector.id for detector in DETECTORS), "job.state")
_SEVERITY = {Verdict.WARN: Severity.WARN, Verdict.FAIL: Severity.FAIL}


@dataclass(frozen=True, slots=True)
class Since:
    """Where to begin: one of a step, seconds before now, and a wall-clock time (UTC seconds)."""

    text: str
    step: float | None = None
    ago_s: float | None = None
    time: float | None = None

    @classmethod
    def parse(cls, text: str) -> Since:
        """A step (``12000``), a time ago (``2h``), or a time (``2026-05-01T12:00``; without a zone: the log's own).

        Raises ValueError.
        """
        bare = text.strip()
        if re.fullmatch(r"\d+(\.\d+)?", bare):
            return cls(bare, step=float(bare))
        if SPAN.fullmatch(bare.lower()):
            return cls(bare, ago_s=seconds(bare))
        try:
            when = datetime.fromisoformat(bare)
        except ValueError:
            raise ValueError(f"{text!r} is no step (12000), time ago (2h) or time (2026-05-01T12:00)") from None
        offset = when.utcoffset()
        shift_s = offset.total_seconds() if offset is not None else 0.0
        naive = when.replace(tzinfo=None)
        return cls(bare, time=(naive - datetime(1970, 1, 1)).total_seconds() - shift_s)

    def first_step(self, run: RunSnapshot) -> float:
        """The first step of `run` that counts. Raises ValueError where the log cannot tell."""
        if self.step is not None:
            return self.step
        newest, rows = np.nan, []
        for view in run.series.values():
            if view.times is not None and view.steps.size:
                known = np.isfinite(view.times)
                if known.any():
                    newest = np.fmax(newest, view.times[known].max())
                    rows.append((view.steps[known], view.times[known]))
        if not rows:
            raise ValueError(f"the log has no times, so --since {self.text} cannot be told; give a step")
        # A log's clock may have no zone: time ago is counted back from its newest record, which is `age_s` old.
        begin = self.time if self.time is not None else newest - ((self.ago_s or 0.0) - (run.age_s or 0.0))
        steps = [float(step[time >= begin].min()) for step, time in rows if (time >= begin).any()]
        return min(steps, default=float("inf"))


@dataclass(frozen=True, slots=True)
class Focus:
    """What of a judgement is asked for: `ids` of checks, where to begin, how old the newest data may be."""

    ids: frozenset[str]
    begin: Since | None = None
    max_age_s: float | None = None

    @classmethod
    def parse(cls, only: Sequence[str], skip: Sequence[str], begin: str | None, max_age: str | None) -> Focus:
        """From the words of the command line. Raises ValueError."""
        return cls(
            chosen(only, skip),
            Since.parse(begin) if begin is not None else None,
            seconds(max_age) if max_age is not None else None,
        )

    def apply(self, runs: Sequence[RunSnapshot]) -> tuple[tuple[RunSnapshot, ...], tuple[str, ...]]:
        """The runs so looked at, and a line for each that cannot be."""
        seen, problems = [], []
        for whole in runs:
            run = whole if self.max_age_s is None else too_old(whole, self.max_age_s)
            if self.begin is not None and run.checks:
                try:
                    run = since(run, self.begin)
                except ValueError as error:
                    run = not_judged(run, str(error))
                    problems.append(f"{run.name}: {error}")
            seen.append(only_checks(run, self.ids) if run.checks else run)
        return tuple(seen), tuple(problems)


def chosen(only: Sequence[str], skip: Sequence[str]) -> frozenset[str]:
    """The ids of the checks that are asked for. Patterns as in ``loss.*``; a group's name stands for all of it.

    Raises ValueError for one that names no check.
    """
    for pattern in (*only, *skip):
        if not any(_names(pattern, check) for check in CHECK_IDS):
            raise ValueError(f"{pattern!r} names no check; there are: {', '.join(sorted(CHECK_IDS))}")
    wanted = [check for check in CHECK_IDS if not only or any(_names(pattern, check) for pattern in only)]
    return frozenset(check for check in wanted if not any(_names(pattern, check) for pattern in skip))


def _names(pattern: str, check: str) -> bool:
    return fnmatchcase(check, pattern) or check.startswith(f"{pattern}.")


def only_checks(run: RunSnapshot, ids: frozenset[str]) -> RunSnapshot:
    """`run` as if no other checks existed."""
    if ids.issuperset(CHECK_IDS):
        return run
    checks = tuple(check for check in run.checks if check.id in ids)
    return _rejudged(run, checks, tuple(episode for episode in run.episodes if episode.check in ids))


def since(run: RunSnapshot, begin: Since) -> RunSnapshot:
    """`run` judged by what happened at or after `begin`: a check whose episodes all ended before it passes.

    A verdict that no episode carries (a setting, a signal that is missing) stays; trouble that still goes on counts.
    Without either, a run that logged nothing since is not judged. Raises ValueError as `first_step`.
    """
    step = begin.first_step(run)
    newest = len(run.attempts) - 1
    kept = tuple(each for each in run.episodes if _is_since(each, step, newest))
    checks = tuple(_check_since(check, run.episodes, kept, step) for check in run.checks)
    seen = _rejudged(run, checks, kept)
    if run.last_step is not None and run.last_step < step and seen.verdict is Verdict.PASS:
        asked = f"step {begin.text}" if begin.step is not None else begin.text
        return not_judged(run, f"nothing was logged since {asked}; the newest step is {run.last_step:.15g}")
    return seen


def _is_since(episode: Episode, step: float, newest_attempt: int) -> bool:
    """Whether it happened since, or goes on; what an abandoned attempt did at a later step lies before it."""
    return episode.last_step >= step or (not episode.recovered and episode.attempt == newest_attempt)


def _check_since(check: CheckResult, before: Sequence[Episode], kept: Sequence[Episode], step: float) -> CheckResult:
    if check.verdict not in _SEVERITY:
        return check
    all_of_it = [each for each in before if each.check == check.id and each.severity >= Severity.WARN]
    left = [each for each in kept if each.check == check.id and each.severity >= Severity.WARN]
    if not all_of_it or len(left) == len(all_of_it):
        return check
    count = len(all_of_it) - len(left)
    earlier = f"{count} earlier episode{'s' if count > 1 else ''} not counted"
    if not left:
        return CheckResult(check.id, check.name, Verdict.PASS, f"nothing since step {step:.15g} ({earlier})")
    severity = min(max(each.severity for each in left), _SEVERITY[check.verdict])
    verdict = Verdict.FAIL if severity is Severity.FAIL else Verdict.WARN
    return replace(check, verdict=verdict, what=f"{left[-1].what} ({earlier})")


def too_old(run: RunSnapshot, max_age_s: float) -> RunSnapshot:
    """`run`, or, when its newest data is older than `max_age_s` or of unknown age, the same as not judged."""
    if run.age_s is not None and run.age_s <= max_age_s:
        return run
    age = f"is {duration(run.age_s)} old" if run.age_s is not None else "is of unknown age"
    reason = f"the newest data {age}, over --max-age {duration(max_age_s)}; {run.state.value}: {run.state_reason}"
    return not_judged(run, reason)


def not_judged(run: RunSnapshot, reason: str) -> RunSnapshot:
    """`run` with no verdict but NO DATA, for this reason."""
    told = tuple((check.id, reason) for check in run.checks)
    return replace(
        run,
        verdict=Verdict.NO_DATA,
        verdict_reason=reason,
        checks=(),
        episodes=(),
        incidents=(),
        not_checked=told,
        actions=(),
    )


def _rejudged(run: RunSnapshot, checks: tuple[CheckResult, ...], episodes: tuple[Episode, ...]) -> RunSnapshot:
    verdict = worst([check.verdict for check in checks if not (check.advisory and check.verdict is Verdict.WARN)])
    if run.verdict is Verdict.NO_DATA and verdict is Verdict.PASS:
        verdict = Verdict.NO_DATA  # a job that merely runs says nothing about its numbers
    ids = {episode.id for episode in episodes}
    told = next((check.what for check in checks if check.verdict is verdict and not check.advisory), "")
    reason = reason_without_trouble(verdict, checks, told)
    advice = {check.next[0].upper() + check.next[1:] for check in run.checks if check.next}
    mine = {check.next[0].upper() + check.next[1:] for check in checks if check.next and check.verdict in _SEVERITY}
    return replace(
        run,
        verdict=verdict,
        verdict_reason=run.verdict_reason if run.verdict is verdict and told in run.verdict_reason else reason,
        checks=checks,
        episodes=episodes,
        incidents=tuple(each for each in run.incidents if ids.intersection(each.episodes)),
        not_checked=tuple((name, why) for name, why in run.not_checked if any(name == check.id for check in checks)),
        actions=tuple(line for line in run.actions if line in mine or (line not in advice and mine)),
    )
