"""Sample runs in trouble: a co-spike, a divergence, an OOM, a hang, no data, a restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.tui.sample_parts import GIB, episode, healthy, log_lines, triage, troubled, view, with_series
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import TRIAGE_ORDER, RunSnapshot, State
from trainmon.tails.record import Note, NoteKind
from trainmon.tails.status import LogLine


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
