"""What an engine answers once all was read, and an engine that answers the same without having read anything."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon.monitor.engine import RunEngine, Steps
from trainmon.monitor.finding import CheckResult, Episode
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.setting_changes import SettingChange
from trainmon.monitor.snapshot import SeriesView
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import Clock
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note, NoteKind, Parsed


@dataclass(frozen=True, slots=True)
class Answers:
    """All that a snapshot asks of an engine. `limits`: the thresholds that are no defaults, each with its source."""

    name: str
    target: str
    limits: list[tuple[str, float, str]]
    steps: Steps | None
    attempts: tuple[tuple[float, float], ...]
    began_anew: bool
    left_sources: tuple[str, ...]
    facts: dict[str, float | str]
    notes: tuple[Note, ...]
    note_counts: dict[NoteKind, int]
    problems: tuple[str, ...]
    raw_keys: list[tuple[SignalKey, str]]
    last_record_line: dict[str, int]
    rl: bool
    moe: bool
    setting_changes: tuple[SettingChange, ...]
    episodes: tuple[Episode, ...]
    checks: tuple[CheckResult, ...]

    @classmethod
    def of(cls, engine: RunEngine) -> Answers:
        """What `engine`, to which all was fed, says now."""
        limits = engine.limits
        return cls(
            name=engine.name,
            target=engine.target,
            limits=[(name, limits[name], limits.source(name)) for name in limits.values],
            steps=engine.steps,
            attempts=engine.attempts,
            began_anew=engine.began_anew,
            left_sources=tuple(sorted(engine.left_sources)),
            facts=engine.facts,
            notes=engine.notes,
            note_counts=engine.note_counts,
            problems=engine.problems,
            raw_keys=list(engine.raw_keys.items()),
            last_record_line=engine.last_record_line,
            rl=engine.rl,
            moe=engine.moe,
            setting_changes=tuple(engine.setting_changes),
            episodes=engine.episodes(),
            checks=engine.checks(),
        )


class AnsweringEngine(RunEngine):
    """Says what `Answers` holds, and `series`, whoever asks. Nothing more can be fed to it."""

    def __init__(self, answers: Answers, series: dict[SignalKey, SeriesView], clock: Clock) -> None:
        super().__init__(answers.name, answers.target, clock=clock, limits=_limits(answers.limits), detectors=())
        self._answers = answers
        self._series = series
        self._judged = answers.episodes

    def feed(self, source: str, parsed: Parsed, restarted: bool = False) -> None:
        """Raises RuntimeError: what made the answers is not here."""
        raise RuntimeError(f"{source}: {parsed.records} records (restarted: {restarted}) for answers that are kept")

    def settle(self, *, is_final: bool = False) -> None:
        """Nothing waits."""
        del is_final

    def series_views(self, *, with_scores: bool = True) -> dict[SignalKey, SeriesView]:
        """See `RunEngine`; with the scores that were kept."""
        del with_scores
        return self._series

    def checks(self) -> tuple[CheckResult, ...]:
        """See `RunEngine`."""
        return self._answers.checks

    @property
    def attempts(self) -> tuple[tuple[float, float], ...]:
        """See `RunEngine`."""
        return self._answers.attempts

    @property
    def began_anew(self) -> bool:
        """See `RunEngine`."""
        return self._answers.began_anew

    @property
    def left_sources(self) -> frozenset[str]:
        """See `RunEngine`."""
        return frozenset(self._answers.left_sources)

    @property
    def steps(self) -> Steps | None:
        """See `RunEngine`."""
        return self._answers.steps

    @property
    def facts(self) -> dict[str, float | str]:
        """See `RunEngine`."""
        return dict(self._answers.facts)

    @property
    def setting_changes(self) -> tuple[SettingChange, ...]:
        """See `RunEngine`."""
        return self._answers.setting_changes

    @property
    def notes(self) -> tuple[Note, ...]:
        """See `RunEngine`."""
        return self._answers.notes

    @property
    def note_counts(self) -> dict[NoteKind, int]:
        """See `RunEngine`."""
        return dict(self._answers.note_counts)

    @property
    def problems(self) -> tuple[str, ...]:
        """See `RunEngine`."""
        return self._answers.problems

    @property
    def raw_keys(self) -> dict[SignalKey, str]:
        """See `RunEngine`."""
        return dict(self._answers.raw_keys)

    @property
    def last_record_line(self) -> dict[str, int]:
        """See `RunEngine`."""
        return dict(self._answers.last_record_line)

    @property
    def rl(self) -> bool:
        """See `RunEngine`."""
        return self._answers.rl

    @property
    def moe(self) -> bool:
        """See `RunEngine`."""
        return self._answers.moe


def _limits(told: Iterable[tuple[str, float, str]]) -> Thresholds:
    limits = Thresholds()
    for name, value, source in told:
        limits = limits.override({name: value}, source=source)
    return limits
