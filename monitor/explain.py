"""What a check does and how it came to its verdict: rule, formula, source, thresholds and this run's numbers.

For ``trainmon check --explain`` and for the screens. Everything is taken from the detector's class, from the thresholds
it asks for, and from the snapshot, so that a new detector is explained without a word here.
"""

from __future__ import annotations

import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from trainmon.monitor.amount import amount, digits, named
from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import CheckResult, Episode, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.explained import JOB_RULES, JobRule
from trainmon.monitor.job.state import duration
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.thresholds import DEFAULTS, Thresholds
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

_WIDTH = 100
_SERIES = 6
_EPISODES = 5
_NAME = re.compile(r"[a-z_]+(?:\.[a-z_0-9]+)*")


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold that the check uses, where its value comes from, and what it would be by default."""

    name: str
    value: float
    default: float
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """`rule` in words, `formula`, `source` (METRICS.md rule, publication); `rows` of the metric table that it reads.

    `bounds`: what it compares with where no threshold can be set. `verdict`, `what`, `why`, `next` and `numbers` (one
    line each) are of the run; None and empty without one.
    """

    id: str
    name: str
    rule: str
    formula: str
    source: str
    signals: tuple[str, ...]
    rows: tuple[str, ...]
    limits: tuple[Limit, ...]
    verdict: Verdict | None = None
    what: str = ""
    why: str = ""
    next: str = ""
    numbers: tuple[str, ...] = ()
    bounds: str = ""


def known() -> tuple[str, ...]:
    """The ids that `explain` takes: the detectors' and those of the job."""
    return (*(detector.id for detector in DETECTORS), *JOB_RULES)


def explain(check: str, run: RunSnapshot | None = None, limits: Thresholds | None = None) -> Explanation:
    """The check `check`, with the numbers of `run`. `limits`: those in force where there is no run.

    Raises KeyError for an id that neither a detector nor the job has.
    """
    cls = next((detector for detector in DETECTORS if detector.id == check), None) or JOB_RULES[check]
    in_force = run.limits if run is not None else limits or Thresholds()
    result = next((one for one in run.checks if one.id == check), None) if run is not None else None
    asked = cls.limits if isinstance(cls, JobRule) else _asked_for(cls, in_force)
    names = dict.fromkeys([*asked, *(_shown(result) if result is not None else ())])
    return Explanation(
        id=cls.id,
        name=cls.name,
        rule=cls.rule if isinstance(cls, JobRule) else _words(cls),
        formula=cls.formula,
        source=cls.source,
        signals=cls.signals,
        rows=tuple(_rows(cls.signals)),
        limits=_limits(sorted(names), in_force),
        verdict=result.verdict if result is not None else None,
        what=result.what if result is not None else "",
        why=result.why if result is not None else "",
        next=result.next if result is not None else "",
        numbers=tuple(_numbers(cls, run)) if run is not None else (),
        bounds=cls.bounds if isinstance(cls, JobRule) else "",
    )


def limits_of(check: str, run: RunSnapshot) -> tuple[Limit, ...]:
    """The thresholds that the check compares with in `run`, those that its verdict names first; those of silence
    for the job's state; none for what a scheduler says."""
    cls = next((detector for detector in DETECTORS if detector.id == check), None)
    if cls is None:
        return _limits(JOB_RULES[check].limits, run.limits) if check in JOB_RULES else ()
    shown = next((tuple(_shown(one)) for one in run.checks if one.id == check), ())
    names = dict.fromkeys([*shown, *_names_asked_for(cls)])
    return _limits(names, run.limits)


def _limits(names: Iterable[str], in_force: Thresholds) -> tuple[Limit, ...]:
    return tuple(Limit(name, in_force[name], DEFAULTS[name], in_force.source(name)) for name in names)


@lru_cache(256)
def _names_asked_for(cls: type[Detector]) -> tuple[str, ...]:
    """Those that it asks for when it is made, then those that its module names and asks for once there are values."""
    names = dict.fromkeys(_asked_for(cls, Thresholds()))
    with suppress(OSError, TypeError):  # no source beside the program
        source = inspect.getsource(inspect.getmodule(cls) or cls)
        names |= dict.fromkeys(name for name in DEFAULTS if f'"{name}"' in source)
    return tuple(names)


def text(one: Explanation, run_name: str = "") -> str:
    """The explanation for people."""
    head = f"{one.name} ({one.id})"
    lines = [head, "=" * len(head), ""]
    lines += _entry("rule", one.rule) + _entry("formula", one.formula) + _entry("source", one.source)
    lines += _entry("reads", ", ".join(one.signals)) + _entry("rows", "; ".join(one.rows))
    if one.limits:
        width = max(len(limit.name) for limit in one.limits)
        lines += ["", "thresholds"]
        for limit in one.limits:
            told = limit.source if limit.source == "default" else f"{limit.source}; default {limit.default:.15g}"
            lines.append(f"  {limit.name:{width}s}  {limit.value:<10.15g} ({printable(told, 200)})")
    elif one.bounds:
        lines += ["", *_entry("thresholds", one.bounds)]
    if one.verdict is not None:
        lines += ["", f"now{f', {printable(run_name, 64)}' if run_name else ''}"]
        lines += _entry(f"[{one.verdict.value}]", one.what) + _entry("why", one.why) + _entry("next", one.next)
        for number in one.numbers:
            lines += textwrap.wrap(printable(number, 300), _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return "\n".join(lines)


class _Asked(dict[str, float]):
    """The values of thresholds, which remember the names that were asked for."""

    def __init__(self, values: Mapping[str, float]) -> None:
        super().__init__(values)
        self.names: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """The value."""
        self.names.append(name)
        return super().get(name, default)


def _asked_for(cls: type[Detector], limits: Thresholds) -> list[str]:
    """The thresholds that a detector of this class asks for when it is made and for its verdict, or names."""
    asked = _Asked(limits.values)
    detector = cls(Thresholds(asked, dict(limits.sources)), {})
    for signal in getattr(cls, "watched", ()):
        detector.make_track(SignalKey(signal))  # type: ignore[attr-defined]  # what has `watched` makes tracks
    shown = detector.result(CheckView(seen={}, facts={}, episodes=(), steps=None, raw_keys={}))
    return [*asked.names, *_shown(shown), *(name for name in _NAME.findall(cls.formula) if name in DEFAULTS)]


def _shown(result: CheckResult) -> list[str]:
    return [name for name in result.thresholds if name in DEFAULTS]


def _words(cls: type[Detector]) -> str:
    """The class docstring as one paragraph."""
    return " ".join((inspect.getdoc(cls) or "").split())


def _rows(signals: Sequence[str]) -> list[str]:
    rows = {}
    for name in signals:
        signal = BY_ID.get(name)
        if signal is not None and signal.row:
            rows[signal.row] = f"{signal.row} {signal.title} ({signal.priority})"
    return [rows[row] for row in sorted(rows)]


def _numbers(cls: type[Detector] | JobRule, run: RunSnapshot) -> list[str]:
    """Where the signals that the check reads stand now, its spike scores, and its newest episodes."""
    told = _of_job(run) if isinstance(cls, JobRule) else []
    views = [view for key, view in run.series.items() if key.signal in cls.signals and view.count]
    views.sort(key=lambda view: view.key)
    told += [_series(view) for view in views[:_SERIES]]
    if len(views) > _SERIES:
        told.append(f"and {len(views) - _SERIES} more series")
    for key, view in run.series.items():
        of = dict(key.labels).get("of", "-")
        if key.signal == "spike.score" and view.count and any(name.startswith(f"{of}.") for name in cls.signals):
            told.append(f"spike score of {of} (z): last {digits(view.last)}, largest kept {digits(_largest(view))}")
    missing = [name for name in cls.signals if not any(view.key.signal == name for view in views)]
    if missing and views:
        told.append(f"not logged: {', '.join(missing[:_SERIES])}{', ...' if len(missing) > _SERIES else ''}")
    mine = [episode for episode in run.episodes if episode.check == cls.id]
    told += [_episode(episode) for episode in mine[-_EPISODES:]]
    if len(mine) > _EPISODES:
        told.append(f"and {len(mine) - _EPISODES} earlier episodes (--json lists all)")
    return told


def _of_job(run: RunSnapshot) -> list[str]:
    """Where the run stands, what its scheduler says, and the rhythm that silence is held against."""
    told = []
    if run.last_step is not None:
        of = "" if run.total_steps is None else f" of {run.total_steps:,.15g}"
        told.append(f"step {run.last_step:,.15g}{of}, {run.step_count:,} in all")
    if run.job is not None:
        left = "" if run.job.time_left_s is None else f", {duration(run.job.time_left_s)} left"
        told.append(f"job {run.job.id}: {run.job.state}{left}")
    if run.at_risk is not None:
        told.append(
            f"next checkpoint in {duration(run.at_risk.next_checkpoint_s)}; about {run.at_risk.steps:.0f} steps at risk"
        )
    if run.root_error and not run.outlived_error:
        told.append(f"root error: {run.root_error}")
    if run.outlived_error:
        told.append(f"outlived error: {run.outlived_error}")
    return [*told, *run.rhythm]


def _series(view: SeriesView) -> str:
    name = view.key.signal
    values = view.values[np.isfinite(view.values)][-100:]
    text_ = f"{named(view.key)}: {view.count:,} values, last {amount(name, view.last)} at step {view.steps[-1]:.15g}"
    text_ += f"; not logged, worked out: {view.derived}" if view.derived else ""
    if len(values) < 2:
        return text_
    middle = float(np.median(values))
    spread = float(np.median(np.abs(values - middle)))
    return f"{text_}; of the last {len(values)} the median is {amount(name, middle)}, the MAD {amount(name, spread)}"


def _largest(view: SeriesView) -> float:
    values = view.values[np.isfinite(view.values)]
    return float(values.max()) if len(values) else math.nan


def _episode(episode: Episode) -> str:
    state = "recovered" if episode.recovered else "not recovered"
    return f"{episode.severity.name} at step {episode.first_step:.15g}: {episode.what or episode.kind} ({state})"


def _entry(name: str, words: str) -> list[str]:
    if not words:
        return []
    return textwrap.wrap(
        printable(words, 2000), _WIDTH, initial_indent=f"{name:9s} ", subsequent_indent=" " * 10, break_long_words=False
    )
