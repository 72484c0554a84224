"""Rows of several files of one run in the order of their steps, whatever order they arrived in.

Rows wait until every source has passed their step, or until too many wait, or until `release_all`. Rows of several
sources at one step become one row. Each signal belongs to one source of those that run beside each other: the first
that logs it, or one that turns out to log it much more often; the others' copies are neither judged nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np

from trainmon.monitor.agreement import Agreement
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.lanes import Lane, Part, Waiting, by_lane, interleave
from trainmon.monitor.line_up import LineUps
from trainmon.monitor.rows import Rows, stack
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.stand_in import PATIENCE, SELDOM, Position, StandIns
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Fact, FloatArray, IntArray, Mark, Note

MOST_WAITING_ROWS: Final = 100_000
_OFTENER: Final = 2
_OFTENER_BY: Final = 8

_COMPARED: Final = 4  # files
_LOSS: Final = SignalKey("loss.train")
_NO_WORD: Final = (Mark.NULL, Mark.NAN)  # in a table or a record they may fill a gap


@dataclass(slots=True)
class Merged:
    """What comes out: rows of one attempt and one path, or something that was said."""

    attempt: int
    path: str
    item: Rows | Note | Fact


class Merge:
    """Feeds of several sources in, rows in order of (attempt, step) out."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}
        self._agreement = Agreement()
        self._owner: dict[tuple[int, SignalKey], str] = {}
        self._counts: dict[tuple[str, SignalKey], int] = {}
        self._line_ups = LineUps()
        self._left_out_keys: dict[str, set[SignalKey]] = {}
        self._stand_ins = StandIns()
        self._is_final = False
        self._given_up: dict[str, Position] = {}  # sources that wait no longer -> how far the owner of the loss was

    @property
    def waiting(self) -> bool:
        """Whether anything is held back."""
        return any(lane.queue for lane in self._lanes.values())

    @property
    def has_stand_ins(self) -> bool:
        """Whether values wait that may stand in for those of a file that has ended."""
        return self.waiting or self._line_ups.can_go_on

    def join(self, path: str, group: int) -> None:
        """Makes a source known, or moves one that has given no rows yet to another group."""
        lane = self._lanes.setdefault(path, Lane(path, len(self._lanes)))
        lane.group = group

    def add(self, path: str, attempt: int, item: Rows | Note | Fact, *, is_numbered: bool = False) -> None:
        """Puts rows, a note or a fact behind what `path` gave before. `is_numbered`: no row has a step."""
        lane = self._lanes[path]
        start = lane.front[1] if lane.front[0] == attempt else -np.inf
        if isinstance(item, Rows):
            if not len(item):
                return
            place = np.maximum.accumulate(np.concatenate(([start], item.steps)))[1:]
            lane.rows += len(item)
            lane.is_numbered = is_numbered
            lane.has_loss |= _LOSS in item.columns
        else:
            place = np.array([start])
        lane.queue.append(Waiting(attempt, item, place))
        lane.front = max(lane.front, (attempt, float(place[-1])))

    def release(self) -> Iterator[Merged]:
        """What every source has passed; all but the newest when too much waits."""
        if sum(lane.rows for lane in self._lanes.values()) > MOST_WAITING_ROWS:
            fronts = sorted(lane.front for lane in self._lanes.values() if lane.rows)
            yield from self._until(fronts[-1])
        else:
            attempt, step = min(lane.front for lane in self._lanes.values())
            # Another row of the slowest source may still come at its newest step.
            yield from self._until((attempt, float(np.nextafter(step, -np.inf))))

    def release_all(self, *, is_final: bool = False) -> Iterator[Merged]:
        """Everything that waits. `is_final`: no more is expected, so that other files' values stand in for an owner's
        behind its end."""
        self._is_final = is_final
        yield from self._until((1 << 60, np.inf))
        self._is_final = False
        if is_final:
            yield from self._line_on()

    def _line_on(self) -> Iterator[Merged]:
        """Records without a step behind the end of the file that tells the steps."""
        for lane in self._lanes.values():
            lined = self._line_ups.go_on(lane.path)
            if lined is None:
                continue
            for key in lined.rows.columns:
                owner = self._owner.setdefault((lane.group, key), lane.path)
                if owner != lane.path:
                    self._stand_ins.give(lane.group, key, (lined.attempt, float(lined.rows.steps[-1])))
            yield Merged(lined.attempt, lane.path, lined.rows)

    def _may_stand_in(self, group: int, key: SignalKey, path: str) -> bool:
        owner = self._owner.get((group, key))
        return owner is not None and owner != path and self._agreement.is_the_same(owner, path)

    def _until(self, end: Position) -> Iterator[Merged]:
        taken: dict[int, list[tuple[Lane, Rows, FloatArray]]] = {}
        said: dict[int, list[tuple[float, int, Lane, Note | Fact]]] = {}
        numbered: list[tuple[Lane, Rows]] = []
        for lane in self._lanes.values():
            for waiting in self._take(lane, self._end_of(lane, end)):
                if isinstance(waiting.item, Rows):
                    if self._stepped_beside(lane) is not None:
                        numbered.append((lane, waiting.item))
                        continue
                    taken.setdefault(waiting.attempt, []).append((lane, waiting.item, waiting.place))
                else:
                    entry = (float(waiting.place[0]), lane.index, lane, waiting.item)
                    said.setdefault(waiting.attempt, []).append(entry)
        self._line_up(taken, numbered)
        for attempt in sorted({*taken, *said}):
            yield from self._attempt(attempt, taken.get(attempt, []), said.get(attempt, []))

    def _line_up(
        self, taken: dict[int, list[tuple[Lane, Rows, FloatArray]]], numbered: list[tuple[Lane, Rows]]
    ) -> None:
        """Adds to what is `taken` the records without a step whose losses tell at which step they were logged."""
        for attempt in sorted(taken):
            for lane, rows, _ in taken[attempt]:
                if _LOSS in rows.columns:
                    self._line_ups.hear(lane.path, attempt, rows.steps, rows.columns[_LOSS])
        for lane in self._lanes.values():
            if (beside := self._stepped_beside(lane)) is None:
                continue
            own = [rows for other, rows in numbered if other is lane]
            for rows in own:
                logged = {key for key in rows.columns if rows.logged(key).any()}
                self._left_out_keys.setdefault(lane.path, set()).update(logged)
            for lined in self._line_ups.take(lane.path, beside.path, stack(own) if own else None):
                place = np.maximum.accumulate(lined.rows.steps)
                taken.setdefault(lined.attempt, []).append((lane, lined.rows, place))

    def _stepped_beside(self, lane: Lane) -> Lane | None:
        """The file that logs the loss by step, among whose steps the numbers of the lane's records would stand."""
        if not (lane.is_numbered and lane.has_loss):
            return None
        others = (o for o in self._lanes.values() if o.has_loss and not o.is_numbered and o.group == lane.group)
        return next(others, None)

    @staticmethod
    def _take(lane: Lane, end: Position) -> list[Waiting]:
        taken: list[Waiting] = []
        while lane.queue:
            waiting = lane.queue[0]
            if waiting.attempt > end[0]:
                break
            count = len(waiting.place)
            if waiting.attempt == end[0]:
                count = int(np.searchsorted(waiting.place, end[1], "right"))
            if not count:
                break
            rows = waiting.item
            if isinstance(rows, Rows):
                lane.rows -= count
                if count < len(rows):
                    taken.append(Waiting(waiting.attempt, rows.take(slice(0, count)), waiting.place[:count]))
                    lane.queue[0] = Waiting(waiting.attempt, rows.take(slice(count, None)), waiting.place[count:])
                    break
            taken.append(lane.queue.pop(0))
        return taken

    def _attempt(
        self,
        attempt: int,
        taken: list[tuple[Lane, Rows, FloatArray]],
        said: list[tuple[float, int, Lane, Note | Fact]],
    ) -> Iterator[Merged]:
        said.sort(key=lambda entry: entry[:2])
        for path, rows, places in interleave(self._owned(attempt, by_lane(taken))):
            begin = 0
            while said and said[0][0] < places[-1]:
                place, _, lane, item = said.pop(0)
                end = max(begin, int(np.searchsorted(places, place, "right")))
                if end > begin:
                    yield Merged(attempt, path, rows.take(slice(begin, end)))
                    begin = end
                yield Merged(attempt, lane.path, item)
            if begin < len(rows):
                yield Merged(attempt, path, rows.take(slice(begin, None)) if begin else rows)
        for _, _, lane, item in said:
            yield Merged(attempt, lane.path, item)

    def _owned(self, attempt: int, parts: list[Part]) -> list[Part]:
        """The parts with only those values that their source owns."""
        holders: dict[tuple[int, SignalKey], list[Part]] = {}
        for part in parts:
            for key in part.rows.columns:
                if not part.rows.logged(key).any():
                    continue  # a slice of a column that was logged elsewhere
                holders.setdefault((part.lane.group, key), []).append(part)
        # The loss first: how far the files agree about it tells what one says of the other signals.
        for (group, key), contenders in sorted(holders.items(), key=lambda held: held[0][1] != _LOSS):
            owner = self._owner.get((group, key))
            given = self._stand_ins.given(group, key, attempt)
            if len(contenders) == 1 and owner in (None, contenders[0].lane.path) and given == -np.inf:
                lane, rows = contenders[0].lane, contenders[0].rows
                self._owner[group, key] = lane.path
                self._counts[lane.path, key] = self._count(lane, key) + int(rows.logged(key).sum())
            else:
                self._settle_owner(attempt, group, key, contenders)
        return parts

    def _count(self, lane: Lane, key: SignalKey) -> int:
        return self._counts.get((lane.path, key), 0)

    def _settle_owner(self, attempt: int, group: int, key: SignalKey, contenders: list[Part]) -> None:
        """Goes through the values of several sources in order: who owns the signal, and from where on."""
        logged = [np.flatnonzero(part.rows.logged(key)) for part in contenders]
        places = np.concatenate([part.places[rows] for part, rows in zip(contenders, logged, strict=True)])
        whose = np.repeat(np.arange(len(contenders)), [len(rows) for rows in logged])
        order = np.lexsort((whose, places))
        by_time = whose[order]
        known = {part.lane.path: index for index, part in enumerate(contenders)}
        counts = [self._count(part.lane, key) + np.cumsum(by_time == index) for index, part in enumerate(contenders)]
        owner = self._owner.get((group, key)) or contenders[int(by_time[0])].lane.path
        if key == _LOSS:
            self._compare(contenders, logged)
        kept = np.zeros(len(by_time), np.bool_)
        start = 0
        while start < len(by_time):
            holds = known.get(owner, -1)
            held = counts[holds] if holds >= 0 else np.full(len(by_time), self._counts.get((owner, key), 0))
            end, heir = len(by_time), owner
            for index, part in enumerate(contenders):
                if index != holds:
                    wins = (counts[index] > _OFTENER * held + _OFTENER_BY) & (by_time == index)
                    if key == _LOSS:  # one loss's beginning with the end of one that contradicts it is neither
                        wins &= ~self._agreement.doubts(owner, part.lane.path, places[order])
                    first = np.flatnonzero(wins[start:end])
                    if len(first):
                        end, heir = start + int(first[0]), part.lane.path
            kept[start:end] = by_time[start:end] == holds
            owner, start = heir, end
        self._owner[group, key] = owner
        kept &= places[order] > self._stand_ins.given(group, key, attempt)
        reached, step = self._lanes[owner].front
        front = step if reached == attempt else -np.inf if reached < attempt else np.inf
        stands = (by_time == self._standing(group, key, contenders)) & (places[order] > front)
        if stands.any():
            kept |= stands
            self._stand_ins.give(group, key, (attempt, float(places[order][stands].max())))
        keep = np.empty(len(kept), np.bool_)
        keep[order] = kept
        for index, (part, rows) in enumerate(zip(contenders, logged, strict=True)):
            self._counts[part.lane.path, key] = self._count(part.lane, key) + len(rows)
            part.drop(key, rows[~keep[whose == index]], everything=not keep[whose == index].any())

    def _standing(self, group: int, key: SignalKey, contenders: list[Part]) -> int:
        """Which source tells a signal where its owner has not come to yet; -1 for none."""
        able = [
            (part.lane.index, index)
            for index, part in enumerate(contenders)
            if self._may_stand_in(group, key, part.lane.path)
        ]
        return min(able)[1] if able else -1

    def _end_of(self, lane: Lane, end: Position) -> Position:
        """How far the rows of a source may go, of those up to `end`: a file that tells the loss far more seldom than
        its owner waits for that one."""
        owner = self._owner.get((lane.group, _LOSS))
        if self._is_final or owner is None:
            return end
        front = self._lanes[owner].front
        if lane.rows > PATIENCE:
            self._given_up[lane.path] = front
        if self._given_up.get(lane.path) == front:
            return end
        is_seldom = SELDOM * self._count(lane, _LOSS) < self._counts.get((owner, _LOSS), 0)
        if not (is_seldom and lane.has_loss and self._may_stand_in(lane.group, _LOSS, lane.path)):
            return end
        return min(end, front)

    def _compare(self, contenders: list[Part], logged: list[IntArray]) -> None:
        """Holds the losses of several files against each other."""
        told = []
        for part, rows in sorted(zip(contenders, logged, strict=True), key=lambda pair: pair[0].lane.index):
            at = rows[part.rows.steps[rows] == part.places[rows]]  # in order: what comes late is let through late
            if (marks := part.rows.marks.get(_LOSS)) is not None:
                at = at[~np.isin(marks[at], _NO_WORD)]
            told.append((part.lane.path, part.rows.steps[at], part.rows.columns[_LOSS][at]))
        for mine, its in combinations(told[:_COMPARED], 2):
            self._agreement.hold(*mine, *its)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """What is to be said of files that contradict each other, or whose records cannot be placed."""
        told = self._agreement.problems({path for (_, key), path in self._owner.items() if key == _LOSS})
        return told + tuple(
            f"{path}: {count:,} records without a step are not counted: another file of the run logs the loss by step"
            + self._lost_with(path)
            for path, count in self._line_ups.left.items()
            if count
        )

    def _lost_with(self, path: str) -> str:
        """What a file whose records are left out alone measures, in words; "" when nothing."""
        group = self._lanes[path].group
        alone = sorted(key.signal for key in self._left_out_keys[path] if (group, key) not in self._owner)
        names = list(dict.fromkeys(BY_ID[signal].title for signal in alone if signal in BY_ID and BY_ID[signal].row))
        if not names:
            return ""
        return f"; only it has {', '.join(names)}, not judged either: log the step beside it"
