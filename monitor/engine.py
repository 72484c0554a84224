"""One run's engine: what its sources gave in, series, episodes, incidents and verdicts out.

A live run and a finished file go through the same code in the same order: however records are cut into feeds,
and however often `settle` is called between them, the results are the same.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trainmon.monitor import alerts
from trainmon.monitor.core import Core, FrameListener
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.numberless import without_numbers
from trainmon.monitor.finding import CheckResult, Episode, Incident, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.intake import Sources
from trainmon.monitor.mapping import Mapper
from trainmon.monitor.one_rise import with_story
from trainmon.monitor.room import BUDGET_BYTES, MOST_POINTS, Points
from trainmon.monitor.run import KeyMapper, UnscaledMapper
from trainmon.monitor.series import SeriesStore
from trainmon.monitor.setting_changes import SettingChange
from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.tally import DistinctSteps
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import Clock
from trainmon.tails.formats.cells import KEY_LIMIT
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note, NoteKind, Parsed


@dataclass(frozen=True, slots=True)
class Steps:
    """Training steps: the first of the log, the last of the newest attempt, how many different ones, their key.

    `key` is "line" where the log has no step and its records are numbered.
    """

    first: float
    last: float
    count: int
    key: str


@dataclass(slots=True)
class _State:
    """What a feed changes: copied whole when rows that wait are decided for a look ahead."""

    core: Core
    sources: Sources


class RunEngine:
    """The engine of one run. Not for several threads at once.

    `detectors`: classes, the registry's by default. `facts` and `sources` (the paths that will be fed) may be given
    when they are known beforehand; with `sources`, the order in which they arrive makes no difference. `attempts`:
    source -> which start of the run wrote it, where a scheduler says. Set `on_frame` to hear the rows as they were
    read, before anything is derived, and `raw_keys_only` to keep the log's key names, both before the first feed.
    """

    def __init__(
        self,
        name: str,
        target: str,
        *,
        clock: Clock,
        limits: Thresholds | None = None,
        detectors: Sequence[type[Detector]] | None = None,
        facts: Mapping[str, float | str] | None = None,
        sources: Sequence[str] = (),
        attempts: Mapping[str, int] | None = None,
        budget_bytes: int = BUDGET_BYTES,
    ) -> None:
        if detectors is None:
            from trainmon.monitor.detectors.registry import DETECTORS

            detectors = DETECTORS
        self.name = name
        self.target = target
        self.limits = limits or Thresholds()
        self.on_frame: FrameListener | None = None
        self.raw_keys_only = False
        self._clock = clock
        store = SeriesStore(budget_bytes)
        core = Core(self.limits, detectors, facts or {}, store)
        self._state = _State(core, Sources(core, sources, attempts))
        self._ahead: _State | None = None
        self._distinct = DistinctSteps()
        self._shown_ahead: dict[str, int] = {}
        self._is_settled = True
        self._judged: tuple[Episode, ...] | None = None
        self._results: tuple[tuple[Episode, ...], tuple[CheckResult, ...]] | None = None
        self._acknowledged: set[str] = set()
        self._snoozed: dict[str, float] = {}

    def limit_memory(self, budget_bytes: int, points: Points = MOST_POINTS) -> None:
        """The room that all series of the run may take from now on, and how many points each of them may have."""
        for state in filter(None, (self._state, self._ahead)):
            state.core.limit_memory(budget_bytes, points)

    # In.

    def feed(self, source: str, parsed: Parsed, restarted: bool = False) -> None:
        """Takes in what one reading of `source` gave. `restarted`: the file was truncated or replaced before it.

        Rows may wait for more, since a frame of few costs as much as one of many; whoever asks has them judged first.
        """
        self._ahead = None
        self._judged = self._results = None
        self._is_settled = False
        self._state.sources.feed(source, parsed, self._mapper, self._listener(), restarted=restarted)

    def tell_attempt(self, source: str, attempt: int) -> None:
        """Says which start of the run writes `source`, before anything of it is fed."""
        self._state.sources.tell_attempt(source, attempt)

    def settle(self, *, is_final: bool = False) -> None:
        """All that was fed is looked at, also what waits for later rows to be certain of. Free when nothing was fed.
        `is_final`: no more is expected of any file.

        Where rows wait because only the next ones tell a restart from other reasons for a smaller step, they are
        decided in a copy: feeding on undecides them again.
        """
        if self._is_settled and not (is_final and self._state.sources.has_stand_ins):
            return
        self._is_settled = True
        self._judged = self._results = None
        self._state.sources.settle(self._listener(), is_final=is_final)
        if not self._state.sources.undecided or self._ahead is not None:
            return
        self._ahead = copy.deepcopy(self._state)
        self._ahead.sources.decide(self._listener(ahead=True))

    def _mapper(self) -> KeyMapper:
        return UnscaledMapper(Mapper()) if self.raw_keys_only else Mapper()

    def _listener(self, *, ahead: bool = False) -> FrameListener | None:
        """`on_frame`, told every row once: rows shown when they were decided ahead are not shown again."""
        listener = self.on_frame
        if listener is None:
            return None
        shown = self._shown_ahead

        def hear(frame: Frame) -> None:
            if ahead:
                shown[frame.path] = shown.get(frame.path, 0) + len(frame)
            elif shown.get(frame.path):
                known = min(shown[frame.path], len(frame))
                shown[frame.path] -= known
                if known == len(frame):
                    return
                frame = _behind(frame, known)
            listener(self._named(frame))

        return hear

    def _named(self, frame: Frame) -> Frame:
        """`frame` with the log's own key names where they are asked for."""
        if not self.raw_keys_only:
            return frame
        raw = self._now.core.raw_keys
        names = {
            key: key if key.labels[:1] and key.labels[0][0] == "writer" else SignalKey(raw.get(key, key.signal))
            for key in frame.columns
        }
        return replace(
            frame,
            columns={names[key]: column for key, column in frame.columns.items()},
            marks={names[key]: marks for key, marks in frame.marks.items()},
        )

    # Out.

    @property
    def _now(self) -> _State:
        if self._ahead is not None:
            return self._ahead
        self._state.sources.pass_rows(self._listener())
        return self._state

    def series_views(self, *, with_scores: bool = True) -> dict[SignalKey, SeriesView]:
        """Every series for drawing; arrays are shared, never copied. The spike scores are worked out when asked for."""
        core = self._now.core
        views = core.store.views(core.raw_keys, core.derivation.texts)
        for score in (*core.scores, core.co_spikes) if with_scores else ():
            view = score.view()
            if view is not None and score.key not in views:
                views[score.key] = view
        return views

    def episodes(self) -> tuple[Episode, ...]:
        """All episodes by attempt and first step, as they stand if the log ends here."""
        if self._judged is None:
            core = self._now.core
            intervals = {number: attempt.interval for number, attempt in enumerate(core.attempts)}
            self._judged = core.last_words().episodes(intervals)
        marked = (self.marked(episode) for episode in self._judged)
        return tuple(marked)

    def incidents(self) -> tuple[Incident, ...]:
        """The episodes gathered into what belongs together."""
        return alerts.incidents(self.episodes(), rl=self.rl)

    def checks(self) -> tuple[CheckResult, ...]:
        """Each check's verdict now, in the order of the report; worked out again only after something came."""
        episodes = self.episodes()
        if self._results is None or self._results[0] != episodes:
            self._results = (episodes, self._judge_all(episodes))
        return self._results[1]

    def _judge_all(self, episodes: tuple[Episode, ...]) -> tuple[CheckResult, ...]:
        core = self._now.core
        steps = self.steps
        seen, numbers, moe = core.store.seen, core.store.numbers, core.moe
        results: list[tuple[int, CheckResult]] = []
        for detector in tuple(core.detectors):
            view = CheckView(
                seen=seen,
                facts=core.facts,
                episodes=tuple(episode for episode in episodes if episode.check == detector.id),
                steps=None if steps is None else (steps.first, steps.last),
                raw_keys=core.raw_keys,
                rl=core.rl,
                moe=moe,
            )
            try:
                told = with_story(detector.result(view), view.episodes)
                told = without_numbers(detector, told, seen, numbers)
                results.append((detector.order, told))
            except Exception as error:  # as for update: one faulty check must not take the others' verdicts away
                core.fail(detector, error)
        for name in core.problems:
            if name.startswith("check "):
                identity = name.removeprefix("check ")
                results.append((1000, CheckResult(identity, identity, Verdict.NO_DATA, core.problems[name])))
        return tuple(result for _, result in sorted(results, key=lambda pair: pair[0]))

    def acknowledge(self, episode_id: str, on: bool = True) -> None:
        """Marks an episode as seen (or not): it pages no more."""
        (self._acknowledged.add if on else self._acknowledged.discard)(episode_id)

    def snooze(self, episode_id: str, until: float) -> None:
        """Silences an episode until the wall-clock time `until`, seconds since the epoch."""
        self._snoozed[episode_id] = until

    @property
    def events(self) -> tuple[int, ...]:
        """Another one whenever more came than numbers that raise no finding; an exact look at those can wait."""
        undecided = id(self._ahead) if self._ahead is not None else 0
        self._state.sources.pass_rows(self._listener())
        return (self._state.core.events, undecided, len(self._acknowledged), len(self._snoozed))

    @property
    def next_wake_s(self) -> float:
        """Seconds until a snoozed episode speaks again; infinite when none is snoozed."""
        now = self._clock.wall()
        return min((until - now for until in self._snoozed.values() if until > now), default=np.inf)

    @property
    def attempts(self) -> tuple[tuple[float, float], ...]:
        """(first, last) training step of each attempt that has any."""
        return tuple((a.first, a.last) for a in self._now.core.attempts if not np.isnan(a.first))

    @property
    def left_sources(self) -> frozenset[str]:
        """The files that earlier starts wrote: what they say last is not how the run ended."""
        return self._now.sources.left

    @property
    def began_anew(self) -> bool:
        """Whether an attempt may as well be another run in the same file: nothing tells them apart."""
        return self._now.sources.began_anew

    @property
    def steps(self) -> Steps | None:
        """The run's training steps; None when there was none."""
        attempts = [attempt for attempt in self._now.core.attempts if attempt.tally.count]
        if not attempts:
            return None
        count = self._distinct.count([attempt.tally for attempt in attempts])
        return Steps(attempts[0].first, attempts[-1].last, count, self._now.sources.step_key)

    @property
    def facts(self) -> dict[str, float | str]:
        """What is fixed about the run, as far as the log has told."""
        return dict(self._now.core.told)

    @property
    def setting_changes(self) -> tuple[SettingChange, ...]:
        """Facts that the log tells otherwise after training has begun."""
        return tuple(self._now.core.changes.found)

    @property
    def notes(self) -> tuple[Note, ...]:
        """The log's events; of each kind the first 50 and the last 450."""
        return self._now.core.notes.notes()

    @property
    def note_counts(self) -> dict[NoteKind, int]:
        """How many notes of each kind there were."""
        return dict(self._now.core.notes.counts)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is odd about the log or went wrong here, one clear line each."""
        core = self._now.core
        told = [*core.problems.values(), *self._now.sources.problems]
        if core.store.refused:
            # A source hands on so many keys, those of step and time among them, and drops the rest uncounted.
            is_cut = core.store.refused + len(core.store.seen) >= KEY_LIMIT - 8
            many = f"{'more than ' if is_cut else ''}{core.store.refused:,}"
            told.append(f"{many} more series than can be kept: their values are not charted")
        return tuple(dict.fromkeys(told))

    @property
    def raw_keys(self) -> dict[SignalKey, str]:
        """Signal -> the log's own name of it."""
        return dict(self._now.core.raw_keys)

    @property
    def last_record_line(self) -> dict[str, int]:
        """Source -> line of its last training record."""
        return self._now.sources.last_lines

    @property
    def rl(self) -> bool:
        """Whether the log's keys tell of policy optimisation."""
        return self._now.core.rl

    @property
    def moe(self) -> bool:
        """Whether the run carries or configures experts."""
        return self._now.core.moe

    def marked(self, episode: Episode) -> Episode:
        """`episode` as the user has marked it: acknowledged, snoozed."""
        until = self._snoozed.get(episode.id)
        if until is not None and until <= self._clock.wall():
            until = None
        if episode.id not in self._acknowledged and until is None:
            return episode
        return replace(episode, acknowledged=episode.id in self._acknowledged, snoozed_until=until)


def _behind(frame: Frame, known: int) -> Frame:
    """`frame` without its first `known` rows."""
    return replace(
        frame,
        steps=frame.steps[known:],
        times=frame.times[known:],
        lines=frame.lines[known:],
        columns={key: column[known:] for key, column in frame.columns.items()},
        marks={key: marks[known:] for key, marks in frame.marks.items()},
    )
