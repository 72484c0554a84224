"""What the sample runs are made of: series, episodes, triage, lines of a log, a healthy run."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from trainmon.monitor.finding import CheckResult, Episode, Incident, Severity, Verdict, worst
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import TRIAGE_ORDER, RunSnapshot, SeriesView, State, TriageStep
from trainmon.tails.record import FloatArray, Note, NoteKind
from trainmon.tails.status import FileStatus, LogLine

TITLES = {
    "job": "job state",
    "loss": "loss",
    "gradients": "gradients",
    "step_time": "step time",
    "memory": "memory",
    "experts": "experts",
    "layers": "layers",
}
NOW = 1_760_000_000.0
GIB = 1024.0**3


def view(
    signal: str,
    steps: FloatArray,
    values: FloatArray,
    attempts: Iterable[int] | None = None,
    **labels: str,
) -> SeriesView:
    """A series; what is not finite in `values` becomes a bad step."""
    good = np.isfinite(values)
    kept = values[good]
    numbered = np.zeros(len(steps), np.int64) if attempts is None else np.fromiter(attempts, np.int64)
    return SeriesView(
        key=SignalKey(signal, tuple(sorted(labels.items()))),
        unit=BY_ID[signal].unit if signal in BY_ID else "",
        steps=steps[good],
        values=kept,
        low=kept,
        high=kept,
        attempts=numbered[good],
        bad_steps=steps[~good],
        count=len(values),
        last=float(values[-1]),
        raw_key=signal.replace(".", "/"),
    )


def episode(
    kind: str,
    signal: str,
    severity: Severity,
    first: float,
    last: float,
    what: str,
    recovered: bool = False,
    check: str = "loss.spike",
    line: int | None = None,
) -> Episode:
    """An episode with an id made from what it is."""
    return Episode(
        id=f"{check}:{kind}:{signal}:0:{first:.0f}",
        incident=f"i{first:.0f}",
        check=check,
        kind=kind,
        signal=SignalKey(signal),
        severity=severity,
        attempt=0,
        path="train.log",
        line=int(first) if line is None else line,
        first_step=first,
        worst_step=first,
        last_step=last,
        worst_value=5.7,
        first_time=None,
        recovered=recovered,
        what=what,
    )


def triage(verdicts: dict[str, tuple[Verdict, str, str, str]], explains: str = "") -> tuple[TriageStep, ...]:
    """The seven steps; those not named in `verdicts` pass."""
    default = {
        "experts": (Verdict.NOT_APPLICABLE, "no experts in this model", "", ""),
        "layers": (Verdict.NO_DATA, "no per-layer values", "", "log max |x| by layer every 100 steps"),
    }
    evidence = {
        "loss": ("loss.train",),
        "gradients": ("grad.norm", "spike.score"),
        "step_time": ("sys.step_time",),
        "memory": ("sys.memory_share",),
        "experts": ("moe.maxvio",),
    }
    steps = []
    for name in TRIAGE_ORDER:
        verdict, what, why, next_ = verdicts.get(name) or default.get(name) or (Verdict.PASS, "as it should be", "", "")
        signals = tuple(SignalKey(signal) for signal in evidence.get(name, ()))
        steps.append(TriageStep(name, TITLES[name], verdict, what, why, next_, signals, (), name == explains))
    return tuple(steps)


def log_lines(n: int, loss: FloatArray, errors: dict[int, str] | None = None, first: int = 1) -> tuple[LogLine, ...]:
    """`n` metric lines with a checkpoint note now and then and `errors` by line number."""
    lines = []
    for number in range(first, first + n):
        step = float(number)
        text = (
            f"iteration {number:8d} | lm loss: {loss[min(number, len(loss)) - 1]:.4E} | grad norm: 0.312 | lr: 3.0E-04"
        )
        kind = "metric"
        if errors and number in errors:
            text, kind = errors[number], "error"
        elif number % 50 == 0:
            text, kind = f"saving checkpoint at iteration {number} to checkpoints/iter_{number:07d}", "note"
        elif number % 17 == 0:
            text, kind = "[rank0]: data loader: shard 12 of 64 opened", "text"
        lines.append(LogLine("train.log", number, text, kind, step))
    return tuple(lines)


def healthy(name: str = "llama-1b-base", n: int = 4000, total: float = 10_000.0) -> RunSnapshot:
    """A dense run without fault, with all signals that a usual trainer logs."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    steps = np.arange(1.0, n + 1)
    noise = rng.standard_normal(n)
    loss = 2.25 + 8.6 * np.exp(-steps / (n / 30)) + 0.9 * np.exp(-steps / (n / 3)) + 0.02 * noise
    grad = 0.25 + 3 * np.exp(-steps / (n / 40)) + 0.03 * np.abs(rng.standard_normal(n))
    step_time = 1.21 + 0.01 * np.abs(rng.standard_normal(n))
    tokens = 524_288.0
    evals = steps[99::100]
    series = [
        view("loss.train", steps, loss),
        view("grad.norm", steps, grad),
        view("grad.clip_rate", steps, np.full(n, 0.02)),
        view("spike.score", steps, np.abs(rng.standard_normal(n)) * 0.8),
        view("sys.step_time", steps, step_time),
        view("sys.tokens_per_second", steps, tokens / step_time),
        view("sys.peak_memory", steps, np.full(n, 61.3 * GIB)),
        view("sys.memory_share", steps, np.full(n, 0.766)),
        view("sys.mfu", steps, 0.52 / step_time),
        view("progress.tokens", steps, steps * tokens),
        view("optim.lr", steps, 3e-4 * np.minimum(1, steps / 200)),
        view("eval.nll", evals, 2.3 + 0.9 * np.exp(-evals / (n / 3))),
    ]
    return RunSnapshot(
        name=name,
        target=f"runs/{name}",
        state=State.RUNNING,
        state_reason="a new value 12 s ago",
        verdict=Verdict.PASS,
        verdict_reason="no fault found",
        first_step=1.0,
        last_step=float(n),
        step_count=n,
        total_steps=total,
        step_key="iteration",
        eta_s=(total - n) * 1.21,
        age_s=12.0,
        live=True,
        root_error=None,
        attempts=((1.0, float(n)),),
        series={one.key: one for one in series},
        episodes=(),
        incidents=(),
        checks=(CheckResult("loss.spike", "Loss Spike Detection", Verdict.PASS, "none", thresholds={"spike.z": 6.0}),),
        not_checked=(("moe.balance", "no expert load in the log"),),
        triage=triage({}),
        actions=(),
        files=(FileStatus(f"runs/{name}/train.log", "megatron", 1 << 20, 1 << 20, n + 30, n, 0, "inotify"),),
        notes=(Note("train.log", n // 50 * 50, 0, NoteKind.CHECKPOINT_SAVED, "saved", float(n // 50 * 50)),),
        log_tail=log_lines(300, loss, first=n - 299),
        facts={"tokens_per_batch": tokens, "total_steps": total, "clip_threshold": 1.0, "gpu": "H100 80GB"},
    )


def with_series(run: RunSnapshot, *views: SeriesView) -> RunSnapshot:
    """`run` with `views` added or put in the place of those with their key."""
    return replace(run, series={**run.series, **{one.key: one for one in views}})


def troubled(
    run: RunSnapshot,
    episodes: tuple[Episode, ...],
    verdicts: dict[str, tuple[Verdict, str, str, str]],
    explains: str,
    actions: tuple[str, ...] = (),
) -> RunSnapshot:
    """`run` with episodes and the triage that follows from them."""
    steps = triage(verdicts, explains)
    steps = tuple(
        replace(
            one,
            episodes=tuple(
                e.id
                for e in episodes
                if e.signal.signal in {key.signal for key in one.signals}
                or (one.id == "job" and e.check == "job.state")
            ),
        )
        for one in steps
    )
    reason = next((one.what for one in steps if one.explains), "")
    incident = Incident(
        "i1", reason, max(e.severity for e in episodes), 1, 2, False, True, tuple(e.id for e in episodes)
    )
    return replace(
        run,
        episodes=episodes,
        incidents=(incident,),
        triage=steps,
        verdict=worst([one.verdict for one in steps]),
        verdict_reason=reason,
        actions=actions,
    )
