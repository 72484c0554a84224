"""The contract of a detector: one fault family, incremental, the same whatever blocks its rows came in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from trainmon.monitor.finding import CheckResult, Episode, Finding
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Note


@dataclass(frozen=True, slots=True)
class CheckView:
    """What is known when a check is asked for its verdict.

    `seen`: how many values each signal has had (all attempts). `facts`: the run's facts (see `tails.record.Fact`).
    `episodes`: this detector's own. `steps`: (first, last) or None. `raw_keys`: signal -> the log's key names.
    `rl`: told to be a policy-optimisation run. `moe`: carries or configures experts.
    """

    seen: Mapping[SignalKey, int]
    facts: Mapping[str, float | str]
    episodes: tuple[Episode, ...]
    steps: tuple[float, float] | None
    raw_keys: Mapping[SignalKey, str]
    rl: bool = False
    moe: bool = False


class Detector(ABC):
    """One check of the report. Keeps state over the rows it was given; never recomputes a window.

    `id` is the check's id in CLI.md and never changes; `name` its title; `signals` what it reads; `order` its
    place in the report; `triage` the step of the walk that it speaks for. `formula` says what it computes and `source`
    where that comes from (rule of METRICS.md, publication); with the class docstring, the rule in words, they are
    what `trainmon check --explain` prints.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    signals: ClassVar[tuple[str, ...]]
    about: ClassVar[tuple[str, ...] | None] = None  # without a number of these there is no verdict; None: of `signals`
    order: ClassVar[int] = 100
    triage: ClassVar[str] = "loss"
    formula: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __init__(self, limits: Thresholds, facts: Mapping[str, float | str]) -> None:
        """`facts` is the run's live dictionary: read it at use, since facts arrive while the log is read."""
        self.limits = limits
        self.facts = facts

    def connect(self, others: Mapping[str, Detector]) -> None:  # noqa: B027 - a hook
        """Told once of the run's other detectors (id -> detector), those of a lower `order` being fed first.

        A detector may then read their state in place of keeping its own; it works without this call too.
        """

    @abstractmethod
    def update(self, frame: Frame) -> Iterable[Finding]:
        """Reads rows of one attempt, in order. Must not depend on how rows were cut into frames."""

    def note(self, note: Note) -> Iterable[Finding]:  # noqa: ARG002 - a hook
        """Hears an event of the log, in its place among the rows."""
        return ()

    def new_attempt(self, attempt: int) -> Iterable[Finding]:  # noqa: ARG002 - a hook
        """A (re)start: forgets what a restart makes void, keeps the rest."""
        return ()

    def finish(self) -> Iterable[Finding]:
        """What only the end of the log tells (the last loss is NaN). May be followed by more rows.

        Called on the current state for a verdict; must leave the state unchanged.
        """
        return ()

    @abstractmethod
    def result(self, view: CheckView) -> CheckResult:
        """The verdict now. NO DATA names the key that would change it."""
