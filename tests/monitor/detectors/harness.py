"""Feeds frames to detectors and folds their findings into episodes, as the engine does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.finding import CheckResult, Episode, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds


def cut(frame: Frame, bounds: Sequence[int]) -> list[Frame]:
    """The rows of `frame` in pieces that end at `bounds`."""
    edges = [0, *sorted(set(bounds)), len(frame)]
    return [part(frame, a, b) for a, b in pairwise(edges) if b > a]


def part(frame: Frame, a: int, b: int) -> Frame:
    columns = {key: values[a:b] for key, values in frame.columns.items()}
    marks = {key: values[a:b] for key, values in frame.marks.items() if (values[a:b] > 1).any()}
    kept = {key: values for key, values in columns.items() if key in marks or not np.isnan(values).all()}
    return replace(
        frame, steps=frame.steps[a:b], times=frame.times[a:b], lines=frame.lines[a:b], columns=kept, marks=marks
    )


@dataclass
class Folded:
    findings: list[Finding] = field(default_factory=list)
    episodes: list[Episode] = field(default_factory=list)
    result: CheckResult | None = None

    @property
    def loud(self) -> list[Episode]:
        return [episode for episode in self.episodes if episode.severity >= Severity.WARN]


def one(told: Folded, kind: str) -> tuple[float, Severity, bool]:
    """First step, severity and recovery of the only warning of this kind."""
    episodes = [episode for episode in told.loud if episode.kind == kind]
    assert len(episodes) == 1, [(e.kind, e.severity, e.first_step) for e in told.episodes]
    return episodes[0].first_step, episodes[0].severity, episodes[0].recovered


def result(told: Folded) -> CheckResult:
    """What the check said."""
    assert told.result is not None
    return told.result


def verdict(told: Folded) -> Verdict:
    """Its verdict."""
    return result(told).verdict


def run(
    cls: type[Detector],
    frames: Iterable[Frame],
    facts: Mapping[str, float | str] | None = None,
    limits: Thresholds | None = None,
    rl: bool = False,
    moe: bool = False,
) -> Folded:
    """All frames through one new detector: its findings, episodes and verdict."""
    detector = cls(limits or Thresholds(), facts if facts is not None else {})
    findings: list[Finding] = []
    seen: dict[SignalKey, int] = {}
    steps: list[float] = []
    attempt = None
    for frame in frames:
        if attempt is not None and frame.attempt != attempt:
            findings += detector.new_attempt(frame.attempt)
        attempt = frame.attempt
        findings += detector.update(frame)
        steps += [float(frame.steps.min()), float(frame.steps.max())]
        for key in frame.columns:
            seen[key] = seen.get(key, 0) + len(frame.logged(key))
    findings += detector.finish()
    episodes = fold(cls.id, findings)
    span = (min(steps), max(steps)) if steps else None
    view = CheckView(seen, facts or {}, tuple(episodes), span, {}, rl=rl, moe=moe)
    return Folded(findings, episodes, detector.result(view))


def fold(check: str, findings: Iterable[Finding]) -> list[Episode]:
    """Episodes, in the order in which they were opened."""
    done: list[Episode] = []
    current: dict[tuple[str, SignalKey], int] = {}
    settled: dict[tuple[str, SignalKey, float | None], int] = {}
    for said in findings:
        address = (said.kind, said.signal)
        place = (*address, said.first_step)
        at = settled.get(place) if said.action != "open" and place in settled else current.get(address)
        if at is None:
            assert said.action == "open", f"{said.action} without an open episode: {said}"
            current[address] = len(done)
            done.append(_new(check, said))
            continue
        before = done[at]
        if said.action == "withdraw":
            assert at == len(done) - 1, "only the newest episode is taken back here"
            done.pop()
            del current[address]
            continue
        worse = abs(said.value) > abs(before.worst_value) or before.worst_value != before.worst_value
        ended = said.action == "recover"
        done[at] = replace(
            before,
            severity=max(before.severity, said.severity),
            last_step=before.last_step if ended else max(before.last_step, said.step),
            worst_value=said.value if worse and not ended else before.worst_value,
            worst_step=said.step if worse and not ended else before.worst_step,
            recovered=ended,
            what=said.what or before.what,
        )
        if ended and settled.pop(place, None) is None:
            del current[address]
        if said.action == "settle":
            settled[place] = current.pop(address)
    return done


def _new(check: str, said: Finding) -> Episode:
    first = said.first_step if said.first_step is not None else said.step
    return Episode(
        id=f"{check}:{said.kind}:{said.signal}:{said.attempt}:{first:g}",
        incident="",
        check=check,
        kind=said.kind,
        signal=said.signal,
        severity=said.severity,
        attempt=said.attempt,
        path=said.path,
        line=said.first_line or said.line,
        first_step=first,
        worst_step=said.step,
        last_step=said.step,
        worst_value=said.value,
        first_time=None,
        recovered=False,
        what=said.what,
        detail=said.detail,
    )
