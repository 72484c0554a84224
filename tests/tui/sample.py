"""Snapshots as a session would publish them, made from numpy: healthy runs and every kind of trouble.

Values follow from the seed of each run's name alone, so pictures of them never change.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from trainmon.monitor.finding import CheckResult, Episode, Incident, Severity, Verdict, worst
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.log_search import LogSearch
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import TRIAGE_ORDER, FleetSnapshot, RunSnapshot, SeriesView, State, TriageStep
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


def co_spike(name: str = "llama-1b-muon") -> RunSnapshot:
    """Loss and gradient norm jump together at step 2001 and recover within 120 steps."""
    run = healthy(name)
    loss, grad = run.series[SignalKey("loss.train")], run.series[SignalKey("grad.norm")]
    score = run.series[SignalKey("spike.score")]
    bump = np.where((loss.steps >= 2001) & (loss.steps < 2121), np.exp(-(loss.steps - 2001) / 30), 0)
    z = np.where(bump > 0.05, 45 * bump, score.values)
    run = with_series(
        run,
        view("loss.train", loss.steps, loss.values + 3.3 * bump),
        view("grad.norm", loss.steps, grad.values + 11 * bump),
        view("spike.score", loss.steps, z),
        view("spike.co_count", loss.steps, np.cumsum(bump > 0.3).astype(float)),
    )
    return troubled(
        run,
        (
            episode("spike", "loss.train", Severity.WARN, 2001, 2098, "loss rose from 2.74 to 5.70 at step 2001", True),
            episode(
                "spike",
                "grad.norm",
                Severity.WARN,
                2001,
                2060,
                "gradient norm 11.3, 40x its median, on the step of the loss spike",
                True,
                check="grad.norm",
            ),
        ),
        {
            "loss": (
                Verdict.WARN,
                "one spike at step 2001, recovered by step 2120",
                "z = 45.0 (above 6), loss 2.74 to 5.70; the gradient norm jumped on the same step",
                "nothing now: spikes mostly recover. If they come back, set the clip threshold to 0.5",
            ),
            "gradients": (
                Verdict.WARN,
                "co-spike with the loss at step 2001",
                "gradient norm 11.3 against a median of 0.28",
                "look at the batch of step 2001",
            ),
        },
        "loss",
        ("Look at the data of steps 1998-2001 before they are seen again",),
    )


def diverged(name: str = "olmo-7b-lr-hot") -> RunSnapshot:
    """Diverges from step 3000, NaN from step 3601 on."""
    run = healthy(name)
    loss, grad = run.series[SignalKey("loss.train")], run.series[SignalKey("grad.norm")]
    late = loss.steps >= 3000
    values = np.where(late, loss.values * np.exp((loss.steps - 3000) / 900), loss.values)
    values = np.where(loss.steps >= 3601, np.nan, values)
    norm = np.where(late, grad.values * np.exp((loss.steps - 3000) / 120), grad.values)
    norm = np.where(loss.steps >= 3601, np.nan, norm)
    run = with_series(run, view("loss.train", loss.steps, values), view("grad.norm", loss.steps, norm))
    return troubled(
        run,
        (
            episode(
                "nonfinite",
                "loss.train",
                Severity.FAIL,
                3601,
                4000,
                "loss is NaN for 400 steps",
                check="loss.nonfinite",
            ),
            episode(
                "divergence",
                "loss.train",
                Severity.FAIL,
                3000,
                3600,
                "loss rose by 92% over 600 steps",
                check="loss.drift",
            ),
            episode(
                "level_shift", "grad.norm", Severity.FAIL, 3050, 4000, "gradient norm 100x its level", check="grad.norm"
            ),
        ),
        {
            "loss": (
                Verdict.FAIL,
                "NaN since step 3601, after a rise from step 3000",
                "400 values in a row are NaN; the loss had risen by 92%",
                "stop it; go back to the checkpoint at step 2950 and lower the peak LR from 3.0e-4 to 1.5e-4",
            ),
            "gradients": (Verdict.FAIL, "gradient norm rose 100x from step 3050", "", "see loss"),
        },
        "loss",
        ("Roll back to the checkpoint at step 2950", "Lower the peak LR from 3.0e-4 to 1.5e-4"),
    )


def oom(name: str = "gpt-neox-20b") -> RunSnapshot:
    """Ran out of memory at step 4000 after a slow creep."""
    run = healthy(name)
    steps = run.series[SignalKey("loss.train")].steps
    share = 0.70 + 0.28 * steps / steps[-1]
    run = with_series(run, view("sys.memory_share", steps, share), view("sys.peak_memory", steps, share * 80 * GIB))
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB (GPU 3)"
    run = troubled(
        run,
        (
            episode("oom", "sys.peak_memory", Severity.FAIL, 4000, 4000, error, check="job.state", line=3990),
            episode(
                "creep",
                "sys.memory_share",
                Severity.WARN,
                2600,
                4000,
                "memory grows 7% each 1000 steps",
                check="sys.memory",
            ),
        ),
        {
            "job": (
                Verdict.FAIL,
                "out of memory at step 4000 on GPU 3",
                "CUDA out of memory; peak memory had grown from 70% to 98%",
                "restart from the checkpoint at step 3950; find what keeps growing, or lower the micro-batch",
            ),
            "memory": (Verdict.FAIL, "98% of 80 GiB and growing", "", "see job state"),
        },
        "job",
        ("Restart from the checkpoint at step 3950",),
    )
    return replace(
        run,
        state=State.OOM,
        state_reason=error,
        root_error=error,
        live=False,
        age_s=7300.0,
        eta_s=None,
        notes=(*run.notes, Note("train.log", 3990, 0, NoteKind.CUDA_OOM, error, 4000.0)),
        log_tail=log_lines(
            300,
            run.series[SignalKey("loss.train")].values,
            {3989: "Traceback (most recent call last):", 3990: error},
            first=3701,
        ),
    )


def hung(name: str = "mamba-3b-hung") -> RunSnapshot:
    """Nothing new for 47 minutes while the job still runs."""
    run = troubled(
        healthy(name),
        (
            episode(
                "hung", "job.state", Severity.FAIL, 4000, 4000, "silent for 47m, usual gap 1.3 s", check="job.state"
            ),
        ),
        {
            "job": (
                Verdict.FAIL,
                "hung: nothing new for 47m",
                "the longest usual gap is 1m 3s (checkpoints)",
                "look at py-spy or NCCL flight recorder on each rank, then cancel and restart from step 3950",
            )
        },
        "job",
    )
    return replace(run, state=State.HUNG, state_reason="silent for 47m", age_s=2820.0)


def no_data(name: str = "sft-no-metrics") -> RunSnapshot:
    """A log without a single metric."""
    empty = healthy(name)
    return replace(
        empty,
        state=State.UNKNOWN,
        verdict=Verdict.NO_DATA,
        verdict_reason="no metrics in the log",
        first_step=None,
        last_step=None,
        step_count=0,
        total_steps=None,
        eta_s=None,
        age_s=200_000.0,
        live=False,
        attempts=(),
        series={},
        triage=triage(dict.fromkeys(TRIAGE_ORDER, (Verdict.NO_DATA, "not logged", "", "log it"))),
        log_tail=(LogLine("train.log", 1, "starting up"), LogLine("train.log", 2, "done")),
        notes=(),
        facts={},
    )


def restarted(name: str = "llama-8b-restart") -> RunSnapshot:
    """Crashed at step 2500, went on from step 2000: two attempts."""
    run = healthy(name)
    loss = run.series[SignalKey("loss.train")]
    steps = np.concatenate((np.arange(1.0, 2501), np.arange(2001.0, 4001)))
    attempts = np.repeat([0, 1], [2500, 2000])
    at = (steps - 1).astype(int)
    values = loss.values[at] + np.where((attempts == 0) & (steps > 2300), (steps - 2300) * 0.002, 0)
    run = with_series(run, view("loss.train", steps, values, attempts))
    run = troubled(
        run,
        (
            episode(
                "restart",
                "loss.train",
                Severity.WARN,
                2001,
                2001,
                "restarted from step 2000 after step 2500",
                True,
                check="run.restarts",
            ),
        ),
        {
            "job": (
                Verdict.WARN,
                "restarted once, 500 steps trained again",
                "attempt 2 began at step 2001",
                "nothing now",
            )
        },
        "job",
    )
    return replace(run, attempts=((1.0, 2500.0), (2001.0, 4000.0)))


def layered(steps: FloatArray, layers: int = 12, experts: int = 8) -> list[SeriesView]:
    """Per-layer values of a run: layer 7's updates grow from step 3000 on, layer 2 has a dead and a hot expert."""
    rng = np.random.default_rng(11)
    every = steps[99::100]
    made = []
    for layer in range(layers):
        ratio = 1e-3 * (1 + 0.1 * layer) * np.exp(0.05 * rng.standard_normal(every.size))
        if layer == 7:
            ratio = ratio * np.where(every > 3000, 12.0, 1.0)
        made.append(view("update.ratio", every, ratio, layer=str(layer)))
        rms = 0.5 + 0.02 * layer + 0.01 * rng.standard_normal(every.size)
        made.append(view("tensor.rms", every, rms, layer=str(layer)))
        made.append(view(f"probe.layers.{layer}.sharpness", every, rng.standard_normal(every.size)))
    for layer in range(4):
        for expert in range(experts):
            load = 1000 * (1 + 0.05 * rng.standard_normal(every.size))
            if layer == 2 and expert in (3, 5):
                load = np.where(every > 3000, {3: 0.0, 5: 4000.0}[expert], load)
            made.append(view("moe.load", every, load, layer=str(layer), expert=str(expert)))
    return made


def moe(name: str = "moe-16x1b") -> RunSnapshot:
    """A mixture of experts whose router collapses on a few experts."""
    run = healthy(name)
    steps = run.series[SignalKey("loss.train")].steps
    rng = np.random.default_rng(7)
    vio = 0.4 + 0.05 * rng.standard_normal(steps.size) + np.where(steps > 2800, (steps - 2800) / 500, 0)
    sources = [
        view("loss.source", steps, 2.2 + shift + 0.8 * np.exp(-steps / 900), source=source)
        for source, shift in (("web", 0.2), ("code", -0.6), ("math", -0.2))
    ]
    run = with_series(
        run,
        view("moe.maxvio", steps, vio),
        view("moe.entropy", steps, 0.97 - np.where(steps > 2800, (steps - 2800) / 8000, 0)),
        view("tensor.abs_max", steps[::100], 30 + steps[::100] / 400, site="output"),
        view("eval.bits_per_byte", steps[99::100], 0.7 + 0.3 * np.exp(-steps[99::100] / 900)),
        *sources,
        *layered(steps),
    )
    return troubled(
        run,
        (
            episode(
                "imbalance", "moe.maxvio", Severity.WARN, 2910, 4000, "MaxVio 2.8, 7x its level", check="moe.balance"
            ),
        ),
        {
            "experts": (
                Verdict.WARN,
                "a few experts get most tokens since step 2910",
                "MaxVio 2.8 against 0.4 before; router entropy 0.82",
                "raise the load-balancing coefficient, or lower the router's LR",
            )
        },
        "experts",
    )


def rl(name: str = "grpo-math-7b") -> RunSnapshot:
    """A GRPO run: reward, KL, entropy and length in place of rows that do not apply."""
    run = healthy(name, n=600, total=1000)
    steps = np.arange(1.0, 601)
    rng = np.random.default_rng(3)
    run = with_series(
        run,
        view("loss.train", steps, 0.01 * rng.standard_normal(600)),
        view("reward.mean", steps, 0.2 + 0.5 * (1 - np.exp(-steps / 200)) + 0.02 * rng.standard_normal(600)),
        view("policy.kl", steps, 0.002 * steps**0.5),
        view("policy.entropy", steps, 0.9 * np.exp(-steps / 800)),
        view("policy.length", steps, 400 + steps * 1.5 + 20 * rng.standard_normal(600)),
        view("policy.zero_variance", steps, 0.1 + steps / 3000),
        view("policy.generation_time", steps, 21 + rng.standard_normal(600)),
    )
    return replace(run, rl=True)


def hostile(name: str = "[bold]evil[/bold]\x1b]0;owned\x07\x1b[2J 模型訓練 \u202egnp.exe") -> RunSnapshot:
    """Markup, control sequences, wide and bidirectional characters wherever a log's text is shown."""
    run = troubled(
        healthy(name),
        (
            episode(
                "spike", "loss.train", Severity.WARN, 2001, 2098, "[red]loss[/red] \x1b[31mrose\x1b[0m \u202e模型", True
            ),
        ),
        {"loss": (Verdict.WARN, "[link=http://x]what[/link] \x1b[2J", "[b]why[/b]", "[@click=app.quit]next[/]")},
        "loss",
        ("[reverse]act[/reverse]",),
    )
    lines = (
        LogLine("train.log", 1, "[bold red]not markup[/] \x1b[2J\x1b]52;c;aGk=\x07", "text"),
        LogLine("train.log", 2, "訓練 " * 200, "metric"),
        LogLine("train.log", 3, "\u202eright to left\u2066", "error"),
    )
    return replace(run, log_tail=lines, step_key="[i]iter[/i]", problems=("[bold]cannot[/bold] \x07read",))


def fleet() -> FleetSnapshot:
    """One run of each kind."""
    runs = (healthy(), co_spike(), diverged(), oom(), hung(), no_data(), restarted(), moe(), rl())
    finished = replace(healthy("pythia-410m", 3000, 3000), state=State.FINISHED, eta_s=None, age_s=93_000.0, live=False)
    return FleetSnapshot(
        runs=(*runs, finished),
        problems=("runs/old/train.log: permission denied; ask its owner or name another file",),
        status="10 runs in 10 files below runs; watched by inotify",
        taken_at=NOW,
    )


def big_fleet(n: int = 200) -> FleetSnapshot:
    """`n` small runs, one in ten in trouble."""
    makers = (healthy, healthy, healthy, healthy, healthy, healthy, healthy, healthy, rl)
    runs = [diverged(f"run-{i:03d}") if i % 10 == 9 else makers[i % 9](f"run-{i:03d}") for i in range(n)]
    return FleetSnapshot(tuple(runs), (), f"{n} runs; watched by inotify", NOW)


class SampleSource:
    """A source whose snapshot the test sets; keeps what it was asked."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        self.snapshot = snapshot
        self.asked: list[tuple[object, ...]] = []
        self.stopped = False

    def latest(self) -> FleetSnapshot:
        return self.snapshot

    def acknowledge(self, run: str, episode_id: str) -> None:
        self.asked.append(("acknowledge", run, episode_id))
        self._change(run, lambda one: replace(one, acknowledged=one.acknowledged or one.id == episode_id))

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        self.asked.append(("snooze", run, episode_id, seconds))
        until = self.snapshot.taken_at + seconds
        self._change(run, lambda one: replace(one, snoozed_until=until) if one.id == episode_id else one)

    def request_log(self, run: str, path: str, line_no: int) -> None:
        self.asked.append(("request_log", run, path, line_no))
        loss = np.full(10_000, 2.5)
        lines = log_lines(101, loss, first=max(1, line_no - 50))
        self._replace(run, lambda one: replace(one, log_context=lines, log_context_for=(path, line_no)))

    def search_log(self, path: str, line_no: int, words: str, by: int) -> LogSearch:
        self.asked.append(("search_log", path, line_no, words, by))
        loss = np.full(10_000, 2.5)

        def read(line: int, around: int) -> list[LogLine]:
            first = max(1, line - around)
            return list(log_lines(max(0, min(9000, line + around) - first + 1), loss, first=first))

        return LogSearch(read, path, line_no, words, by).start()

    def stop(self) -> None:
        self.stopped = True

    def _change(self, run: str, change: object) -> None:
        assert callable(change)
        self._replace(run, lambda one: replace(one, episodes=tuple(change(e) for e in one.episodes)))

    def _replace(self, run: str, change: object) -> None:
        assert callable(change)
        runs = tuple(change(one) if one.name == run else one for one in self.snapshot.runs)
        self.snapshot = replace(self.snapshot, runs=runs)
