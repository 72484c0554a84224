"""Runs with episodes, as a session would publish them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from trainmon.monitor.alerts import incidents
from trainmon.monitor.finding import Episode, Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.sinks.event import AlertEvent, Rank
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot, State
from trainmon.tails.status import FileStatus

NOW = 1_800_000_000.0
PATH = "/runs/a/train.log"
HOSTILE = 'x"; touch /tmp/owned; $(reboot) `id`\n\x1b]52;c;AAAA\x07 <!channel> @everyone [win](http://evil)'


def episode(
    name: str = "e1",
    signal: str = "loss.train",
    severity: Severity = Severity.FAIL,
    *,
    check: str = "loss.nonfinite",
    kind: str = "nonfinite",
    incident: str = "",
    step: float = 100.0,
    recovered: bool = False,
    acknowledged: bool = False,
    snoozed_until: float | None = None,
    what: str = "loss is NaN since step 100",
    path: str = PATH,
) -> Episode:
    return Episode(
        id=name,
        incident=incident or f"i{name}",
        check=check,
        kind=kind,
        signal=SignalKey(signal),
        severity=severity,
        attempt=0,
        path=path,
        line=7,
        first_step=step,
        worst_step=step,
        last_step=step,
        worst_value=float("nan"),
        first_time=None,
        recovered=recovered,
        what=what,
        acknowledged=acknowledged,
        snoozed_until=snoozed_until,
    )


def run_of(*episodes: Episode, name: str = "a", **changes: object) -> RunSnapshot:
    run = RunSnapshot(
        name=name,
        target=f"{name}/train.log",
        state=State.RUNNING,
        state_reason="",
        verdict=Verdict.FAIL,
        verdict_reason="",
        first_step=1.0,
        last_step=200.0,
        step_count=200,
        total_steps=None,
        step_key="step",
        eta_s=None,
        age_s=1.0,
        live=True,
        root_error=None,
        attempts=((1.0, 200.0),),
        series={},
        episodes=episodes,
        incidents=incidents(episodes),
        checks=(),
        not_checked=(),
        triage=(),
        actions=(),
        files=(FileStatus(PATH, "jsonl", 100, 100, 10, 10, 0),),
        notes=(),
        log_tail=(),
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def fleet_of(*runs: RunSnapshot, **changes: object) -> FleetSnapshot:
    return replace(FleetSnapshot(runs, taken_at=NOW), **changes)  # type: ignore[arg-type]


def event_of(*episodes: Episode, kind: str = "opened", name: str = "a", rank: Rank = Rank.PAGE) -> AlertEvent:
    run = run_of(*(episodes or (episode(),)), name=name)
    lead = run.episodes[0]
    over = kind in ("recovered", "withdrawn")
    return AlertEvent(
        kind,  # type: ignore[arg-type]
        NOW,
        run.name,
        run.target,
        run.state.value,
        run.incidents[0],
        Rank.INFO if over else rank,
        rank,
        lead,
        run.episodes,
    )


class Said:
    """What a sink says of its trouble, from any thread."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._more:
            self.lines.append(line)
            self._more.notify_all()

    def wait(self, count: int = 1, seconds: float = 20.0) -> Sequence[str]:
        """Its lines, once there are `count`."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.lines) >= count, seconds), self.lines
            return list(self.lines)


class Marked:
    """A session that is told of other people's marks."""

    def __init__(self) -> None:
        self.marks: list[tuple[object, ...]] = []
        self._more = threading.Condition()

    def acknowledge(self, run: str, episode_id: str) -> None:
        self._add("acknowledge", run, episode_id)

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        self._add("snooze", run, episode_id, seconds)

    def _add(self, *mark: object) -> None:
        with self._more:
            self.marks.append(mark)
            self._more.notify_all()

    def wait(self, count: int = 1, seconds: float = 20.0) -> list[tuple[object, ...]]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.marks) >= count, seconds), self.marks
            return list(self.marks)
