"""When each file is looked at next: by its own rhythm, by how long it has been quiet, and by what a look costs."""

from __future__ import annotations

import heapq

from trainmon.tails.quick_dataclass import dataclass

LEAST_S = 0.03  # a file that is written to without pause is not looked at more often
MOST_LOOKS = 400  # a second, on the word of inotify: with many busy files each look finds several lines
GATHER_S = 0.02  # at most: writes to many busy files that come closer together are looked at together
_BUSY_AT_GATHER = 200
_COUNT_S = 1.0
HOT_S = 0.25
HEARTBEAT_S = 2.0
COLD_S = 5.0
FROZEN_S = 30.0
IS_HOT_FOR_S = 30.0
IS_COLD_AFTER_S = 600.0
IS_FROZEN_AFTER_S = 86_400.0
LOOKS_A_GAP = 4  # polling finds what was written a quarter of the run's own interval late, at most
MAX_SHARE = 0.25  # of its time that a reader may spend looking: a slow file server is not asked more often
LONGEST_S = 10.0  # a file that grows is looked at this often, whatever that costs
_LEARN = 0.3
_LEARN_COST = 0.05

INOTIFY = "inotify"
POLL = "poll"


@dataclass(slots=True)
class _Entry:
    by: str
    due: float
    changed_at: float
    polled_at: float = float("-inf")
    gap_s: float = 0.0  # between changes, lately; 0 until there were two
    rate: float = 0.0  # looks a second, as planned
    changes: int = 0  # the first is the history that was there


class Schedule:
    """When each path is to be polled next, in monotonic seconds.

    >>> schedule = Schedule()
    >>> schedule.add("a.log", POLL, now=0.0)
    >>> schedule.take_due(0.0), schedule.take_due(0.1)
    (['a.log'], [])
    >>> schedule.polled("a.log", now=0.1, changed=True)
    >>> schedule.next_due()
    0.3125
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._heap: list[tuple[float, str]] = []
        self._rate = 0.0  # of all entries
        self._cost_s = 0.0  # of one look, lately
        self.gather_s = 0.0  # how long to wait for further wake-ups, with as many busy files as there are
        self._least_s = LEAST_S
        self._counted_at = float("-inf")
        self._attended: frozenset[str] | None = None
        self._others_s = 0.0

    def attend(self, paths: frozenset[str], others_s: float, now: float) -> None:
        """Of files that inotify tells of only `paths` are looked at when they are written to; the others every
        `others_s` seconds, all in one go."""
        fresh = paths - (self._attended or frozenset())
        self._attended, self._others_s = paths, others_s
        for path in fresh:
            self.wake(path, now)

    @property
    def is_patient(self) -> bool:
        """Whether no file is to be looked at the moment it is written to: all come together, every now and then."""
        return self._attended is not None and not self._attended and self._others_s >= HOT_S

    def _others_due(self, path: str, now: float) -> float:
        """When `path` may be looked at: `now` where it is attended to."""
        if self._attended is None or path in self._attended or self._others_s < HOT_S:
            return now
        return (now // self._others_s + 1) * self._others_s

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def add(self, path: str, by: str, now: float) -> None:
        """Watches `path`; it is due at once."""
        self.remove(path)
        self._entries[path] = _Entry(by, now, now)
        heapq.heappush(self._heap, (now, path))

    def remove(self, path: str) -> None:
        """Forgets `path`."""
        entry = self._entries.pop(path, None)
        if entry is not None:
            self._rate -= entry.rate

    def watched_by(self, path: str) -> str:
        """How `path` is watched; "" when it is not."""
        entry = self._entries.get(path)
        return entry.by if entry is not None else ""

    def set_by(self, path: str, by: str, now: float) -> None:
        """Says how `path` is watched from now on; it is due now, since something may have been missed."""
        entry = self._entries.get(path)
        if entry is not None and entry.by != by:
            entry.by = by
            self.wake(path, now)

    def wake(self, path: str, now: float) -> None:
        """`path` is due now, or a moment after it was last polled: `LEAST_S`, longer when many files are busy."""
        entry = self._entries.get(path)
        if entry is not None:
            if now - self._counted_at >= _COUNT_S:
                self._counted_at = now
                busy = sum(0 < other.gap_s < _COUNT_S > now - other.changed_at for other in self._entries.values())
                self._least_s = max(LEAST_S, busy / MOST_LOOKS)
                self.gather_s = GATHER_S * min(busy / _BUSY_AT_GATHER, 1.0)
            moment = self._others_due(path, now) if entry.by == INOTIFY else now
            self._set_due(entry, path, min(max(moment, entry.polled_at + self._least_s), entry.due))

    def wake_all(self, now: float) -> None:
        """Every path is due now."""
        for path in self._entries:
            self.wake(path, now)

    def polled(
        self,
        path: str,
        now: float,
        *,
        changed: bool,
        age_s: float | None = None,
        cost_s: float | None = None,
        again_s: float | None = None,
    ) -> None:
        """`path` was polled. `changed`: something new was there; `age_s`: seconds since the file was written to, by its
        time stamp (counts for the first look only, which finds the history); `cost_s`: how long a mere look took;
        `again_s`: what was held back is to be given after so many seconds, also of an old file."""
        entry = self._entries.get(path)
        if entry is None:
            return
        entry.polled_at = now
        if cost_s is not None:
            self._cost_s += _LEARN_COST * (cost_s - self._cost_s)
        if changed:
            if entry.changes > 1:
                gap_s = now - entry.changed_at
                entry.gap_s += (_LEARN if entry.gap_s else 1.0) * (gap_s - entry.gap_s)
            entry.changed_at = now if entry.changes else now - max(age_s or 0.0, 0.0)
            entry.changes += 1
        interval_s = self._interval_s(entry, now)
        if entry.by == INOTIFY and self._attended is not None and path not in self._attended:
            interval_s = max(interval_s, self._others_s)  # heartbeats are no reason to look more often than is asked
        self._rate += 1.0 / interval_s - entry.rate
        entry.rate = 1.0 / interval_s
        interval_s *= self._stretch(interval_s)
        grid_s = interval_s / 4  # files of one pace are looked at together: fewer wake-ups
        due = (now + interval_s) // grid_s * grid_s
        if again_s is not None and now - entry.changed_at >= IS_COLD_AFTER_S:
            due = min(due, now + max(again_s, LEAST_S))
        self._set_due(entry, path, due)

    def next_due(self) -> float | None:
        """When the next path is due; None when there is none."""
        while self._heap:
            due, path = self._heap[0]
            entry = self._entries.get(path)
            if entry is not None and entry.due == due:
                return due
            heapq.heappop(self._heap)
        return None

    def take_due(self, now: float) -> list[str]:
        """The paths that are due; each must be given back by `polled`."""
        taken = []
        while (due := self.next_due()) is not None and due <= now:
            _, path = heapq.heappop(self._heap)
            self._entries[path].due = float("inf")
            taken.append(path)
        return taken

    def _interval_s(self, entry: _Entry, now: float) -> float:
        quiet_s = now - entry.changed_at
        if quiet_s >= IS_COLD_AFTER_S:
            return FROZEN_S if quiet_s >= IS_FROZEN_AFTER_S else COLD_S
        if entry.by == INOTIFY:
            return HEARTBEAT_S if quiet_s > HEARTBEAT_S else HEARTBEAT_S / 2
        if quiet_s < max(IS_HOT_FOR_S, 2 * entry.gap_s):
            return min(max(entry.gap_s / LOOKS_A_GAP, HOT_S), HEARTBEAT_S)
        return HEARTBEAT_S

    def _stretch(self, interval_s: float) -> float:
        """By how much looks are put off where they take more than `MAX_SHARE` of the time."""
        share = self._rate * self._cost_s / MAX_SHARE
        return max(min(share, LONGEST_S / interval_s), 1.0)

    def _set_due(self, entry: _Entry, path: str, due: float) -> None:
        if entry.due != due:
            entry.due = due
            heapq.heappush(self._heap, (due, path))
