"""A process as the job: what /proc says of the PID that the user named."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from trainmon.monitor.job.state import JobState
from trainmon.monitor.snapshot import JobInfo, State
from trainmon.tails.clock import Clock
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

# Running and waiting for something come and go many times a second.
_WORDS: Final = {
    "R": "RUNNING",
    "S": "RUNNING",
    "I": "RUNNING",
    "T": "STOPPED",
    "t": "TRACED",
    "Z": "ZOMBIE",
    "X": "GONE",
}
_BLOCKED_LOOKS: Final = 3  # so many looks in a row in state D before it is called blocked
_START_TIME: Final = 22  # field of /proc/PID/stat, counted from 1


@dataclass(frozen=True, slots=True)
class _Seen:
    state: str
    start_ticks: int
    name: str


class Process:
    """Looks at one PID. A PID that another process has taken over since is one that is gone.

    >>> import os
    >>> from trainmon.tails.clock import SystemClock
    >>> Process(os.getpid(), SystemClock()).look().id == f"pid {os.getpid()}"
    True
    """

    def __init__(self, pid: int, clock: Clock, proc: Path = Path("/proc")) -> None:
        self.pid = pid
        self._clock = clock
        self._proc = proc
        self._first = self._see()
        self._gone_at: float | None = None
        self._told: JobInfo | None = None
        self._blocked = 0

    @property
    def is_there(self) -> bool:
        """Whether there was such a process at the beginning."""
        return self._first is not None

    def look(self) -> JobInfo:
        """What it is doing now; equal to what was said before while nothing but the time changed."""
        job = self._look(self._clock.wall())
        if self._told is None or replace(job, asked_at=0.0) != replace(self._told, asked_at=0.0):
            self._told = job
        return self._told

    def _look(self, now: float) -> JobInfo:
        seen = self._see()
        if seen is None or self._first is None or seen.start_ticks != self._first.start_ticks:
            self._gone_at = self._gone_at or now
            name = self._first.name if self._first is not None else ""
            return JobInfo(f"pid {self.pid}", "GONE", name, ended_at=self._gone_at, asked_at=now, sources=_FROM_PROC)
        self._blocked = self._blocked + 1 if seen.state == "D" else 0
        word = _WORDS.get(seen.state, "BLOCKED" if self._blocked >= _BLOCKED_LOOKS else "RUNNING")
        stdout = self._link("fd/1")
        return JobInfo(
            f"pid {self.pid}",
            word,
            seen.name,
            started_at=self._started_at(seen.start_ticks),
            stdout=stdout if stdout.startswith("/") else "",
            work_dir=self._link("cwd"),
            asked_at=now,
            sources=_FROM_PROC,
        )

    def _see(self) -> _Seen | None:
        try:
            text = (self._proc / str(self.pid) / "stat").read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):
            return None
        # The name may hold anything, blanks and brackets too: it ends at the last one.
        head, _, tail = text.rpartition(")")
        fields = tail.split()
        if len(fields) <= _START_TIME - 3:
            return None
        return _Seen(fields[0], int(fields[_START_TIME - 3]), printable(head.partition("(")[2], 100))

    def _link(self, name: str) -> str:
        try:
            return str((self._proc / str(self.pid) / name).readlink())
        except OSError:
            return ""

    def _started_at(self, ticks: int) -> float | None:
        try:
            stat = (self._proc / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        booted = next((line.split()[1] for line in stat.splitlines() if line.startswith("btime ")), "")
        return float(booted) + ticks / os.sysconf("SC_CLK_TCK") if booted.isdigit() else None


_FROM_PROC: Final = {"state": "/proc", "started_at": "/proc", "stdout": "/proc"}


def judged(
    job: JobInfo,
    words: JobState | None,
    silence: Callable[[float | None], JobState],
    *,
    now: float,
    age_s: float | None,
) -> JobState:
    """The run's state by its process: gone and silent means over, and how is for the log to say."""
    if job.state in ("GONE", "ZOMBIE"):
        if words is not None:
            return replace(words, reason=f"{words.reason} [{job.id} is gone]", is_over=True)
        reason = f"the process ({job.id}) is gone and the log does not say how it ended"
        return JobState(State.UNKNOWN, reason, is_over=True, outlived=silence(None).outlived)
    if job.state in ("STOPPED", "TRACED"):
        return JobState(State.SLOW, f"the process ({job.id}) is stopped; `kill -CONT` lets it go on")
    ran_s = now - job.started_at if job.started_at is not None else None
    if words is None or (ran_s is not None and age_s is not None and age_s > ran_s + 60.0):
        found = silence(None)
        if job.state == "BLOCKED" and found.state in (State.SLOW, State.HUNG):
            return replace(found, reason=f"{found.reason}; the process waits for a disk or a file system (state D)")
        return found
    return replace(words, reason=f"{words.reason} [the process ({job.id}) still runs]")
