"""What a detector says (`Finding`), what a person sees of it (`Episode`), and how bad it is (`Severity`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Literal

from trainmon.monitor.frame import SignalKey
from trainmon.tails.quick_dataclass import dataclass


class Severity(IntEnum):
    """Ordered: the worst of several is their maximum."""

    INFO = 0
    WARN = 1
    FAIL = 2


class Verdict(StrEnum):
    """METRICS.md's five words."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    NO_DATA = "NO DATA"
    NOT_APPLICABLE = "N/A"


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a whole: its worst part's; NO DATA only when nothing could be judged."""
    for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.PASS):
        if verdict in verdicts:
            return verdict
    return Verdict.NO_DATA


Action = Literal["open", "grow", "recover", "withdraw", "settle"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One word of a detector about one step. An episode is addressed by (kind, signal) while it is open.

    "open" begins an episode (or grows the open one), "grow" extends it and may raise its severity, "recover"
    ends it, "withdraw" takes it back. "settle": its level is the new level; it stays open beside what begins after
    it, and is addressed by its `first_step` from then on. `first_step` may reach back before `step` when a fault is
    only known after it lasted. `what` is one plain clause with this run's numbers ("loss rose from 2.31 to 5.70 at
    step 2001").
    """

    action: Action
    kind: str
    signal: SignalKey
    severity: Severity
    step: float
    value: float
    line: int
    path: str
    attempt: int
    time: float = float("nan")
    first_step: float | None = None
    first_line: int | None = None
    what: str = ""
    origin: Literal["log", "live"] = "log"
    detail: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Episode:
    """One fault of one signal, from its first to its last offending step, however many steps fired inside.

    `id` never changes once given: it is made from check, kind, signal, attempt and first step.
    """

    id: str
    incident: str
    check: str
    kind: str
    signal: SignalKey
    severity: Severity
    attempt: int
    path: str
    line: int
    first_step: float
    worst_step: float
    last_step: float
    worst_value: float
    first_time: float | None
    recovered: bool
    what: str
    origin: Literal["log", "live"] = "log"
    acknowledged: bool = False
    snoozed_until: float | None = None
    detail: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Incident:
    """Episodes that belong together: one story, one page. `pages` follows METRICS.md's word "page".

    `cause`: what most likely lies behind it, "" when nothing points to it. `worst_step`: of its leading episode.
    """

    id: str
    title: str
    severity: Severity
    first_step: float
    last_step: float
    recovered: bool
    pages: bool
    episodes: tuple[str, ...]
    cause: str = ""
    worst_step: float | None = None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict of one check: what, why, what next, and the thresholds it used (name -> value, "source").

    An `advisory` WARN is advice about settings or logging: shown, counted as a warning, but no trouble of the run.
    """

    id: str
    name: str
    verdict: Verdict
    what: str
    why: str = ""
    next: str = ""
    thresholds: dict[str, float | str] = field(default_factory=dict)
    advisory: bool = False


def reason_without_trouble(verdict: Verdict, checks: Sequence[CheckResult], otherwise: str = "") -> str:
    """Why a run with no trouble has this `verdict`, and that there is advice where there is."""
    advice = [check.name for check in checks if check.advisory and check.verdict is Verdict.WARN]
    fine = f"nothing wrong found; advice on {', '.join(advice)}" if advice else "nothing wrong found"
    return {Verdict.PASS: fine, Verdict.NO_DATA: "nothing could be judged"}.get(verdict, otherwise)
