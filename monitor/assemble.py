"""One run's engine and files, seen at one moment, as the immutable snapshot that screens and commands are given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from trainmon.monitor.advice import actions
from trainmon.monitor.alerts import gather, story_of_end
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import CheckResult, Episode, Incident, Severity, Verdict, reason_without_trouble, worst
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.explained import told_by_rhythm
from trainmon.monitor.job.judging import JobState, Pulse, job_state
from trainmon.monitor.job.lines import left_behind, tell_of_jobs
from trainmon.monitor.job.pauses import expected_pause
from trainmon.monitor.job.work import RISK_ID
from trainmon.monitor.snapshot import JobInfo, RunSnapshot, SeriesView, State, TriageStep
from trainmon.monitor.step_unit import counted
from trainmon.monitor.thresholds import REST, Thresholds
from trainmon.monitor.triage import walk
from trainmon.tails.status import FileStatus, LogLine

STEP_OF_CHECK: dict[str, str] = {detector.id: detector.triage for detector in DETECTORS} | {
    "job.state": "job",
    RISK_ID: "job",
}
_JOB_NEXT = {
    State.OOM: "lower the micro-batch size or sequence length, or shard more; restart from the last checkpoint",
    State.CRASHED: "read the error and the lines before it, then restart from the last checkpoint",
    State.NODE_FAIL: "exclude the node and restart from the last checkpoint",
    State.TIME_LIMIT: "resubmit from the last checkpoint, with checkpoints closer together than the time limit",
    State.PREEMPTED: "resubmit or wait for the requeue; check that a checkpoint was written",
    State.CANCELLED: "nothing, if this was meant; else restart from the last checkpoint",
    State.HUNG: "look at the ranks' stacks (py-spy dump) and the network; a hung collective does not come back",
    State.SLOW: "wait for the next record; look at step time and storage if it stays away",
    State.REQUEUED: "wait for the next start; check that it resumes from the last checkpoint",
}
_BLOCKED_NEXT = "look at `scontrol show job` for what it waits for; release, change or submit it again"
# A run that waits is not judged by what it did before.
_WAITING = frozenset((State.QUEUED, State.REQUEUED))


# A log of system metrics alone says nothing of the training.
_LOSS = SignalKey("loss.train")
_MOST_NAMED = 5
_JUDGED = frozenset(("loss", "grad", "eval", "reward", "policy", "moe", "tensor", "update", "residual", "modality"))


def assemble(
    engine: RunEngine,
    files: Sequence[FileStatus],
    log_tail: Sequence[LogLine],
    pulse: Pulse,
    *,
    live: bool,
    progress: float = 1.0,
    problems: Sequence[str] = (),
    revision: int = 0,
    log_context: tuple[LogLine, ...] = (),
    log_context_for: tuple[str, int] | None = None,
    with_scores: bool = True,
    jobs: Sequence[JobInfo] = (),
    now: float | None = None,
) -> RunSnapshot:
    """The snapshot of a run. `pulse` tells how its data arrives; `problems` what concerns its files.

    `with_scores`: also the series of spike scores, which only screens draw. `jobs`: what a scheduler says of every
    start of the run's jobs, oldest first; `now`: the wall-clock time to hold it against.
    """
    steps = engine.steps
    is_counted = steps is not None and steps.key == "line"  # numbered records are no share of the steps
    total = None if is_counted else _number(engine.facts.get("total_steps"))
    span = (steps.first, steps.last) if steps is not None else None
    series = engine.series_views(with_scores=with_scores)
    eta_s = _eta_s(series, span, total) if counted(engine.facts) == "steps" else None
    told = tell_of_jobs(engine, series, jobs, eta_s=eta_s, now=now)
    expected = expected_pause(pulse.pauses, engine.notes, series, span[1] if span else None, told.stride)
    job = job_state(
        engine.notes,
        engine.last_record_line,
        span,
        total,
        pulse,
        engine.limits,
        job=told.job,
        expected=expected,
        now=now,
        left=left_behind(jobs) | engine.left_sources,
    )
    results = engine.checks()
    checks = (*results, _job_check(job), *told.checks)
    episodes = _with_job_episode(engine.episodes(), job, engine)
    triage = walk(checks, STEP_OF_CHECK, episodes, series)
    verdict = overall(checks, has_metrics=any(_is_judged(key, view) for key, view in series.items()))
    return RunSnapshot(
        name=engine.name,
        target=engine.target,
        state=job.state,
        state_reason=job.reason,
        verdict=verdict,
        verdict_reason=_reason(verdict, triage, checks, _loss_unknown(series))
        if job.state not in _WAITING
        else job.reason,
        first_step=span[0] if span else None,
        last_step=span[1] if span else None,
        step_count=steps.count if steps is not None else 0,
        total_steps=total,
        step_key=steps.key if steps is not None else "",
        eta_s=None if job.ended or job.state is State.UNKNOWN else eta_s,
        age_s=pulse.age_s,
        live=live and not job.is_over,
        root_error=job.error,
        outlived_error=job.outlived,
        attempts=tuple(engine.attempts),
        series=series,
        episodes=episodes,
        incidents=incidents_with_job(engine.incidents(), episodes, rl=engine.rl),
        checks=checks,
        not_checked=tuple(
            (check.id, check.what) for check in checks if check.verdict in (Verdict.NO_DATA, Verdict.NOT_APPLICABLE)
        ),
        triage=triage,
        actions=actions(checks, episodes, engine.notes, engine.facts, series),
        files=tuple(files),
        notes=tuple(engine.notes),
        log_tail=tuple(log_tail),
        facts=dict(engine.facts),
        problems=(*problems, *engine.problems),
        progress=progress,
        revision=revision,
        rl=engine.rl,
        log_context=log_context,
        log_context_for=log_context_for,
        thresholds_source=_thresholds_source(engine.limits),
        job=told.job,
        job_chain=tuple(jobs),
        at_risk=told.at_risk,
        goodput=told.goodput,
        limits=engine.limits,
        setting_changes=tuple(engine.setting_changes),
        rhythm=told_by_rhythm(span is not None, pulse, expected, engine.limits, is_over=job.ended),
    )


def overall(checks: Sequence[CheckResult], *, has_metrics: bool) -> Verdict:
    """The run's verdict: its worst part's, advice left out; NO DATA only when nothing could be judged.

    A job that is merely known to run says nothing about the run while it has no numbers.
    """
    judged = [check.verdict for check in checks if not (check.advisory and check.verdict is Verdict.WARN)]
    verdict = worst(judged)
    if not has_metrics and verdict is Verdict.PASS:
        return Verdict.NO_DATA
    return verdict


def _job_check(job: JobState) -> CheckResult:
    return CheckResult(
        id="job.state",
        name="Job State",
        verdict=job.verdict,
        what=f"{job.state.value}: {job.reason}" if job.reason else job.state.value,
        next=_BLOCKED_NEXT if job.is_blocked else _JOB_NEXT.get(job.state, ""),
        thresholds={},
    )


def _with_job_episode(episodes: tuple[Episode, ...], job: JobState, engine: RunEngine) -> tuple[Episode, ...]:
    if job.verdict not in (Verdict.WARN, Verdict.FAIL):
        return episodes
    steps = engine.steps
    step = steps.last if steps is not None else 0.0
    note = job.evidence
    if note is not None and note.step is not None:
        step = note.step
    severity = Severity.FAIL if job.verdict is Verdict.FAIL else Severity.WARN
    attempt = max(len(engine.attempts) - 1, 0)
    ended = Episode(
        id=f"job.state:{job.state.value}:{step:.15g}",
        incident=story_of_end(episodes, attempt, step) or f"job:{step:.15g}",
        check="job.state",
        kind=job.state.value,
        signal=SignalKey("job.state"),
        severity=severity,
        attempt=attempt,
        path=note.source if note else "",
        line=note.line_no if note else 0,
        first_step=step,
        worst_step=step,
        last_step=step,
        worst_value=math.nan,  # one and the same: two episodes that say the same must be equal
        first_time=note.time if note else None,
        recovered=False,
        what=job.reason,
        origin="log" if note else "live",
    )
    return (*episodes, engine.marked(ended))


def incidents_with_job(
    incidents: tuple[Incident, ...], episodes: Sequence[Episode], *, rl: bool = False
) -> tuple[Incident, ...]:
    """The incidents with the end of the job, which pages when it is a FAIL: in the story it ended, or in its own."""
    gathered = {incident.id: incident for incident in incidents}
    for end in (episode for episode in episodes if episode.check == "job.state"):
        members = [episode for episode in episodes if episode.incident == end.incident]
        joined = gather(end.incident, members, rl=rl)
        gathered[end.incident] = joined if len(members) > 1 else replace(joined, title=end.what)
    return tuple(gathered.values())


def _is_judged(key: SignalKey, view: SeriesView) -> bool:
    """Whether this series is one of those that a run is judged by, and has ever been a number."""
    return key.signal.partition(".")[0] in _JUDGED and bool(np.isfinite(view.values).any())


def _loss_unknown(series: Mapping[SignalKey, SeriesView]) -> str:
    """That the training loss was logged and never once as a number, or what was in its place; else empty."""
    loss = series.get(_LOSS)
    if loss is None or not loss.count:
        return "" if any(_is_judged(key, view) for key, view in series.items()) else _only_others(series)
    if np.isfinite(loss.values).any():
        return ""
    return f"the loss was logged {loss.count:,} times, never as a number"


def _only_others(series: Mapping[SignalKey, SeriesView]) -> str:
    """What numbers there are where a run is judged by none of them; "" where there is none at all."""
    names = sorted({str(key) for key, view in series.items() if view.count})
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"no loss, gradient, reward or evaluation, only {', '.join(name[:60] for name in names[:_MOST_NAMED])}{more}"


def _reason(verdict: Verdict, triage: Sequence[TriageStep], checks: Sequence[CheckResult], loss_unknown: str) -> str:
    """The first check of the explaining step that carries the verdict, in its own words."""
    explaining = next((step for step in triage if step.explains), None)
    if explaining is not None:
        telling = (
            check.what
            for check in checks
            if check.verdict is verdict and not check.advisory and STEP_OF_CHECK.get(check.id) == explaining.id
        )
        return next(telling, explaining.what)
    told = reason_without_trouble(verdict, checks)
    if not loss_unknown or verdict not in (Verdict.PASS, Verdict.NO_DATA):
        return told
    if verdict is Verdict.PASS:
        return f"the loss is unknown: {loss_unknown.removeprefix('the loss was ')}; in the rest {told}"
    return f"{told}: {loss_unknown}"


def _eta_s(
    series: Mapping[SignalKey, SeriesView], span: tuple[float, float] | None, total: float | None
) -> float | None:
    step_time = series.get(SignalKey("sys.step_time"))
    if span is None or total is None or step_time is None or not step_time.count:
        return None
    recent = sorted(value for value in step_time.values[-50:].tolist() if value == value)
    return (total - span[1]) * recent[len(recent) // 2] if recent and total > span[1] else None


def _thresholds_source(limits: Thresholds) -> str:
    """Where the thresholds that are no defaults come from."""
    sources = sorted({limits.source(name) for name in limits.values})
    return ", ".join(sources) or limits.sources.get(REST, "defaults, not calibrated")


def _number(value: float | str | None) -> float | None:
    return value if isinstance(value, (int, float)) else None
