"""Snapshots as a session would publish them, made from numpy: healthy runs and every kind of trouble.

Values follow from the seed of each run's name alone, so pictures of them never change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.tui.sample_faults import co_spike, diverged, hung, no_data, oom, restarted
from tests.tui.sample_kinds import hostile, layered, moe, rl
from tests.tui.sample_parts import GIB, NOW, TITLES, episode, healthy, log_lines, triage, troubled, view, with_series
from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.snapshot import FleetSnapshot, State
from trainmon.tails.status import LogLine

__all__ = [
    "GIB",
    "NOW",
    "TITLES",
    "SampleSource",
    "big_fleet",
    "co_spike",
    "diverged",
    "episode",
    "fleet",
    "healthy",
    "hostile",
    "hung",
    "layered",
    "log_lines",
    "moe",
    "no_data",
    "oom",
    "restarted",
    "rl",
    "triage",
    "troubled",
    "view",
    "with_series",
]


def fleet() -> FleetSnapshot:
    """One run of each kind."""
    runs = (healthy(), co_spike(), diverged(), oom(), hung(), no_data(), restarted(), moe(), rl())
    finished = replace(healthy("pythia-410m", 3000, 3000), state=State.FINISHED, eta_s=None, age_s=93_000.0, live=False)
    return FleetSnapshot(
        runs=(*runs, finished),
        problems=("runs/old/train.log: permission denied; ask its owner or name another file",),
        status="10 runs in 10 files below runs; watched by inotify",
        taken_at=NOW,
    )


def big_fleet(n: int = 200) -> FleetSnapshot:
    """`n` small runs, one in ten in trouble."""
    makers = (healthy, healthy, healthy, healthy, healthy, healthy, healthy, healthy, rl)
    runs = [diverged(f"run-{i:03d}") if i % 10 == 9 else makers[i % 9](f"run-{i:03d}") for i in range(n)]
    return FleetSnapshot(tuple(runs), (), f"{n} runs; watched by inotify", NOW)


class SampleSource:
    """A source whose snapshot the test sets; keeps what it was asked."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self.snapshot = snapshot
        self.asked: list[tuple[object, ...]] = []
        self.stopped = False

    def latest(self) -> FleetSnapshot:
        return self.snapshot

    def acknowledge(self, run: str, episode_id: str) -> None:
        self.asked.append(("acknowledge", run, episode_id))
        self._change(run, lambda one: replace(one, acknowledged=one.acknowledged or one.id == episode_id))

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        self.asked.append(("snooze", run, episode_id, seconds))
        until = self.snapshot.taken_at + seconds
        self._change(run, lambda one: replace(one, snoozed_until=until) if one.id == episode_id else one)

    def request_log(self, run: str, path: str, line_no: int) -> None:
        self.asked.append(("request_log", run, path, line_no))
        loss = np.full(10_000, 2.5)
        lines = log_lines(101, loss, first=max(1, line_no - 50))
        self._replace(run, lambda one: replace(one, log_context=lines, log_context_for=(path, line_no)))

    def search_log(self, path: str, line_no: int, words: str | None, by: int) -> LogSearch:
        self.asked.append(("search_log", path, line_no, words, by))
        loss = np.full(10_000, 2.5)

        def read(line: int, around: int) -> list[LogLine]:
            first = max(1, line - around)
            return list(log_lines(max(0, min(9000, line + around) - first + 1), loss, first=first))

        return LogSearch(read, path, line_no, words or "error", by).start()

    def stop(self) -> None:
        self.stopped = True

    def _change(self, run: str, change: object) -> None:
        assert callable(change)
        self._replace(run, lambda one: replace(one, episodes=tuple(change(e) for e in one.episodes)))

    def _replace(self, run: str, change: object) -> None:
        assert callable(change)
        runs = tuple(change(one) if one.name == run else one for one in self.snapshot.runs)
        self.snapshot = replace(self.snapshot, runs=runs)
