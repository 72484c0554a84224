"""Sample runs of other kinds: experts, RL, and names that want to be obeyed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.tui.sample_parts import episode, healthy, troubled, view, with_series
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.record import FloatArray
from trainmon.tails.status import LogLine


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
