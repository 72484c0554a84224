"""What the checks of the job do, in words, and the numbers that they rest on: what `--explain` says of them."""

from __future__ import annotations

from typing import Final

from trainmon.monitor.job.pauses import Expected
from trainmon.monitor.job.silence import patience_s
from trainmon.monitor.job.state import Pulse, seconds
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class JobRule:
    """A check that no detector makes: it judges the job and not its numbers. As the attributes of a `Detector`.

    `limits`: the thresholds that it compares with. `bounds`: what it compares with where none can be set.
    """

    id: str
    name: str
    rule: str
    formula: str
    source: str
    signals: tuple[str, ...]
    limits: tuple[str, ...]
    bounds: str = ""


_STATE: Final = JobRule(
    "job.state",
    "Job State",
    "What the job is doing, by who knows best: what Slurm or /proc says of its process; else the log's own last "
    "words, which count as the end only where no training record follows them (the first error is the cause, what "
    "launchers and other ranks print behind it is not; all planned steps done is finished); else how long it has been"
    " silent. Silence counts only where the log was seen growing or a scheduler says that the job runs: an old file "
    "is unknown. A silence is explained, and no fault, where the run is used to pause at this step (a checkpoint, an "
    "evaluation), where the log says that it saves, or where its records come in bursts (a buffered writer). Running,"
    " starting, finished, checkpointing, evaluating, buffered and queued are a PASS; slow, preempted, requeued, "
    "cancelled and time limit a WARN; hung, crashed, out of memory and node failure a FAIL, which pages.",
    "hung: silent for more than max(silence.gaps x the 99th percentile of the last 1,000 gaps between records, "
    "silence.seconds); slow: for more than half of it; before the first step silence.starting_seconds; where records "
    "come in bursts at least silence.gaps x the longest usual time between two; where a pause is due at least 3 x the"
    " longest of its kind",
    "METRICS.md, silence and end of the job; Deng, triage step 1",
    ("job.state",),
    ("silence.gaps", "silence.seconds", "silence.starting_seconds"),
)
_RISK: Final = JobRule(
    "job.risk",
    "Work at Risk",
    "The job's time limit comes before its next checkpoint is due and before its last step: the steps since the last "
    "checkpoint would be lost. Told only where a scheduler says how much time is left; a WARN, never a page.",
    "a WARN where the time left < the time to the next checkpoint, and < the time to the last step; time to the next "
    "checkpoint = (last saved + interval - last step) x the median of the last 50 step times; interval: the logged "
    "setting, else the usual distance of the saves that the log tells of",
    "METRICS.md, end of the job (time limit); Slurm, TimeLimit of the job",
    ("sys.step_time",),
    (),
    "none to set: the job's time left is held against this run's own time to its next checkpoint and to its last step "
    "(step times: the median of the last 50; by the job's running time from 20 steps on, where none are logged)",
)
JOB_RULES: Final = {rule.id: rule for rule in (_STATE, _RISK)}


def told_by_rhythm(
    has_steps: bool, pulse: Pulse, expected: Expected | None, limits: Thresholds, *, is_over: bool
) -> tuple[str, ...]:
    """The numbers of this run that silence is held against, one a line; of a job that is over, only its gaps."""
    told = [] if pulse.age_s is None else [f"newest data {seconds(pulse.age_s)} old"]
    if pulse.gap_s is not None or pulse.gap_p99_s is not None:
        told.append(f"gaps between records: median {seconds(pulse.gap_s)}, 99th percentile {seconds(pulse.gap_p99_s)}")
    else:
        told.append("gaps between records: unknown (no time stamps in the log, and it was not seen growing)")
    if pulse.burst_s is not None:
        told.append(
            f"records come about {pulse.burst_records or 0:.0f} at a time, up to {seconds(pulse.burst_s)} apart"
        )
    if pulse.pauses:
        last = pulse.pauses[-1]
        told.append(
            f"long pauses: {len(pulse.pauses)}, the newest of {seconds(last.gap_s)} behind step {last.step:.15g}"
        )
    if is_over:
        return tuple(told)
    if expected is not None:
        told.append(
            f"a pause is due now: usually {seconds(expected.usual_s)} {expected.why},"
            f" {seconds(expected.longest_s)} at most"
        )
    limit = patience_s(has_steps, pulse, expected, limits)
    told.append(f"slow from {seconds(limit / 2)} of silence on, hung from {seconds(limit)}")
    if not pulse.seen_growing:
        told.append("not seen growing: without a scheduler's word silence tells nothing")
    return tuple(told)
