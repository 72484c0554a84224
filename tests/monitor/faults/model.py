"""Faults inside the model: experts, scales, residual stream, modalities; evaluations, samples and policies."""

from __future__ import annotations

import numpy as np

from tests.monitor.faults.shape import AT, Case, Columns, Plan, Told
from trainmon.monitor.finding import Severity
from trainmon.tails.record import FloatArray

INFO, WARN, FAIL = Severity.INFO, Severity.WARN, Severity.FAIL


def sparse(plan: Plan, values: FloatArray, every: int = 20) -> FloatArray:
    """Logged on every 20th record."""
    return np.where(plan.i % every == 0, values, np.nan)


def _experts(plan: Plan, hot: float = 1.0, dead: float = 1.0) -> Columns:
    base = plan.base()
    for layer in range(4):
        for expert in range(6):
            factor = 1.0
            load = plan.noisy(500.0, 0.08)
            if layer == 2 and expert == 1:
                load = load * plan.late(1.0, hot)
            if layer == 2 and expert == 4:
                load = load * plan.late(1.0, dead)
            base[f"moe/layer_{layer}/expert_{expert}/tokens"] = load * factor
    return base


def _layers(
    plan: Plan, name: str, level: float, bad: FloatArray | float, layers: int = 4, spread: float = 0.08
) -> Columns:
    base = plan.base()
    for layer in range(layers):
        values = plan.noisy(level, spread) * (bad if layer == 2 else 1.0)
        base[f"layers/{layer}/{name}"] = sparse(plan, values)
    return base


def _policy(plan: Plan, **changed: FloatArray) -> Columns:
    return {
        "actor/pg_loss": plan.rng.normal(0, 0.02, plan.n),
        "actor/grad_norm": plan.noisy(0.4, 0.12),
        "actor/lr": 1e-6 * np.minimum((plan.i + 1) / 60, 1.0),
        "critic/rewards/mean": changed.get(
            "reward", 0.2 + 0.5 * (1 - np.exp(-plan.i / 300)) + plan.rng.normal(0, 0.02, plan.n)
        ),
        "actor/ppo_kl": changed.get("kl", plan.noisy(0.04, 0.2)),
        "actor/entropy": changed.get("entropy", plan.noisy(0.9, 0.04)),
        "response_length/mean": changed.get("length", plan.noisy(400.0, 0.05)),
        "response_length/max": changed.get("longest", plan.noisy(900.0, 0.02)),
        "frac_reward_zero_std": changed.get("flat", plan.share(0.2, 0.03)),
        "response_length/clip_ratio": changed.get("cut", plan.share(0.02, 0.005)),
    }


def _eval(plan: Plan, factor: FloatArray | float) -> Columns:
    return plan.base() | {
        "val/loss": sparse(plan, 1.03 * plan.noisy(1.9 + 8.0 * (plan.i + 30.0) ** -0.35, 0.002) * factor, 40)
    }


CASES = (
    Case(
        "MaxVio doubles in one layer",
        lambda p: _layers(p, "maxvio", 0.7, p.late(1.0, 3.0)),
        (Told("moe.balance", "imbalance", "moe.maxvio", labels={"layer": "2"}, slack=40, pages=False),),
    ),
    Case(
        "a hot expert in one layer",
        lambda p: _experts(p, hot=4.0),
        (Told("moe.balance", "hot_expert", "moe.load", slack=20),),
    ),
    Case(
        "a dead expert in one layer",
        lambda p: _experts(p, dead=0.001),
        (Told("moe.balance", "dead_experts", "moe.load", slack=20),),
    ),
    Case(
        "one shard draws the tokens",
        lambda p: p.base() | {"moe/shard_imbalance": p.noisy(p.late(1.2, 4.0), 0.05)},
        (Told("moe.balance", "imbalance", "moe.shard_imbalance"),),
    ),
    Case(
        "router entropy falls before MaxVio",
        lambda p: (
            p.base()
            | {
                f"layers/{k}/router_entropy": sparse(p, p.share(p.late(0.94, 0.72) if k == 1 else 0.94, 0.006))
                for k in range(3)
            }
            | {f"layers/{k}/maxvio": p.noisy(0.4, 0.08) for k in range(3)}
        ),
        (Told("moe.balance", "entropy", "moe.entropy", labels={"layer": "1"}, slack=40),),
    ),
    Case(
        "output AbsMax",
        lambda p: p.base() | {"output/abs_max": sparse(p, p.noisy(p.late(25, 600), 0.08))},
        (Told("numerics.abs_max", "scale", "tensor.abs_max", slack=20),),
    ),
    Case(
        "update ratio falls to zero in one layer",
        lambda p: _layers(p, "update_ratio", 1e-3, p.late(1.0, 0.0)),
        (Told("update.ratio", "update_ratio", "update.ratio", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "update ratio jumps in one layer",
        lambda p: _layers(p, "update_ratio", 1e-3, p.late(1.0, 30.0)),
        (Told("update.ratio", "update_ratio", "update.ratio", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "RMS drifts in one layer",
        lambda p: _layers(p, "rms", 1.0, np.exp(np.maximum(p.i - 300, 0) / 260)),
        (Told("numerics.abs_max", "scale_drift", "tensor.rms", first=1270, slack=120, labels={"layer": "2"}),),
    ),
    Case(
        "heavy tails in one layer",
        lambda p: _layers(p, "kurtosis", 3.2, p.late(1.0, 40.0)),
        (Told("numerics.abs_max", "scale", "tensor.kurtosis", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "an optimiser's moments are lost",
        lambda p: (
            p.base()
            | {
                "optim/exp_avg_sq_norm/w0": sparse(p, p.noisy(3e-5, 0.1)),
                "optim/exp_avg_sq_norm/w1": sparse(p, p.noisy(p.late(3e-5, 2e-8), 0.1)),
            }
        ),
        (Told("numerics.abs_max", "scale", "optim.state", labels={"param": "w1"}, slack=20),),
        advice=("optimiser's state",),
    ),
    Case(
        "an expert's router score vanishes",
        lambda p: (
            p.base()
            | {
                f"moe/layer_1/expert_{k}/router_score": sparse(
                    p, p.noisy(p.late(0.12, 0.004) if k == 3 else 0.12, 0.05)
                )
                for k in range(4)
            }
        ),
        (Told("moe.balance", "router_score", "moe.router_score", labels={"layer": "1", "expert": "3"}, slack=20),),
    ),
    Case(
        "dead neurons",
        lambda p: (
            p.base()
            | {f"layers/{k}/dead_fraction": sparse(p, p.share(p.late(0.02, 0.6) if k == 2 else 0.02)) for k in range(4)}
        ),
        (Told("tensor.dead", "dead_units", "tensor.dead_fraction", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "zero activations",
        lambda p: (
            p.base()
            | {f"layers/{k}/zero_fraction": sparse(p, p.share(p.late(0.3, 0.8) if k == 2 else 0.3)) for k in range(4)}
        ),
        (Told("tensor.dead", "dead_units", "tensor.zero_fraction", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "a branch dominates",
        lambda p: _layers(p, "branch_scale", 0.3, p.late(1.0, 25.0)),
        (Told("residual.stream", "branch", "residual.branch_scale", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "a layer stops changing the stream",
        lambda p: _layers(p, "block_importance", 0.2, p.late(1.0, 0.02)),
        (Told("residual.stream", "idle_layer", "residual.block_importance", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "updates lost to rounding",
        lambda p: (
            p.base()
            | {f"layers/{k}/bf16_noop": sparse(p, p.share(p.late(0.1, 0.7) if k == 2 else 0.1)) for k in range(4)}
        ),
        (Told("residual.stream", "lost_updates", "residual.bf16_noop", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "gates close",
        lambda p: (
            p.base()
            | {
                f"layers/{k}/gate_saturation": sparse(p, p.share(p.late(0.2, 0.85) if k == 2 else 0.2))
                for k in range(4)
            }
        ),
        (Told("residual.stream", "closed_gates", "residual.gate_saturation", labels={"layer": "2"}, slack=20),),
    ),
    Case(
        "a modality runs dry",
        lambda p: (
            p.base()
            | {
                "image_token_share": p.share(p.late(0.2, 0.0), 0.01),
                "text_token_share": p.share(p.late(0.8, 1.0), 0.01),
            }
        ),
        (Told("modality.balance", "mix_gone", "modality.token_share", labels={"modality": "image"}),),
    ),
    Case(
        "media embeddings blow up",
        lambda p: p.base() | {"embedding_scale_ratio": sparse(p, p.noisy(p.late(1.1, 40), 0.05))},
        (Told("modality.balance", "media_scale", "modality.scale_ratio", slack=20),),
    ),
    Case(
        "an encoder stops learning",
        lambda p: p.base() | {"encoder_grad_share": sparse(p, p.noisy(p.late(0.2, 1e-4), 0.1))},
        (Told("modality.balance", "encoder_stopped", "modality.encoder_grad_share", slack=20),),
    ),
    Case(
        "over-fitting",
        lambda p: _eval(p, np.exp(np.maximum(p.i - AT, 0) * 1.6e-4)),
        (Told("eval.heldout", "held_out", "eval.nll", slack=400, says=("over-fitting",)),),
    ),
    Case(
        "held-out loss jumps, and the training loss no longer falls",
        lambda p: _eval(p, p.late(1.0, 1.3)) | {"opt/lm_loss": p.noisy(p.loss() * p.late(1.0, 1.03), 0.002)},
        (Told("eval.heldout", "held_out", "eval.nll", FAIL, slack=40, pages=True),),
    ),
    Case(
        "a task regresses",
        lambda p: p.base() | {"eval/gsm8k/acc": sparse(p, p.share(p.late(0.61, 0.30), 0.01), 50)},
        (Told("eval.tasks", "task_drop", "eval.accuracy", slack=50),),
    ),
    Case(
        "media gain is lost",
        lambda p: (
            p.base()
            | {
                "eval/vqa/with_image": sparse(p, p.share(p.late(0.7, 0.4), 0.01), 50),
                "eval/vqa/without_image": sparse(p, p.share(0.4, 0.01), 50),
            }
        ),
        (Told("eval.tasks", "task_drop", "eval.media_gain", slack=50),),
    ),
    Case(
        "reward collapses",
        lambda p: _policy(
            p, reward=0.2 + 0.5 * (1 - np.exp(-p.i / 300)) - p.late(0.0, 0.55) + p.rng.normal(0, 0.02, p.n)
        ),
        (Told("rl.health", "policy", "reward.mean", FAIL, slack=6, pages=True),),
    ),
    Case(
        "KL blows up",
        lambda p: _policy(p, kl=p.noisy(p.late(0.04, 2.0), 0.2)),
        (Told("rl.health", "policy", "policy.kl", FAIL, slack=6, pages=True),),
    ),
    Case(
        "entropy collapses",
        lambda p: _policy(p, entropy=p.noisy(p.late(0.9, 0.03), 0.05)),
        (Told("rl.health", "policy", "policy.entropy", FAIL, slack=6, pages=True),),
    ),
    Case(
        "lengths run to the limit",
        lambda p: _policy(
            p,
            length=p.noisy(400 * np.exp(np.minimum(np.maximum(p.i - AT, 0) / 100, np.log(4096 / 400.0))), 0.02).clip(
                0, 4096
            ),
            longest=np.where(p.i < AT, p.noisy(900.0, 0.02), 4096.0),
            cut=p.share(p.late(0.02, 0.8), 0.01),
        ),
        (Told("rl.health", "truncated", "policy.truncated", slack=5),),
    ),
    Case(
        "groups without variance",
        lambda p: _policy(p, flat=p.share(p.late(0.2, 0.97), 0.02)),
        (Told("rl.health", "zero_variance", "policy.zero_variance"),),
    ),
    Case(
        "samples turn empty",
        lambda p: p.base(),
        (Told("output.samples", "empty_output", "sample.empty", slack=100),),
        extra=lambda r: (
            {"sample": "" if r >= AT else f"the quick brown fox {r} jumps over {r * 7} lazy dogs and runs home"}
            if r % 20 == 0
            else {}
        ),
    ),
    Case(
        "samples repeat themselves",
        lambda p: p.base(),
        (Told("output.samples", "repetition", "sample.repetition", slack=100),),
        extra=lambda r: (
            {
                "sample": "and then and then " * 30
                if r >= AT
                else f"the quick brown fox {r} jumps over {r * 7} lazy dogs and runs home with number {r * 13}"
            }
            if r % 20 == 0
            else {}
        ),
    ),
    Case(
        "samples become gibberish",
        lambda p: p.base(),
        (Told("output.samples", "gibberish", "sample.gibberish", slack=100),),
        extra=lambda r: (
            {
                "sample": " ".join(
                    "".join("xqzjkvwp%"[(r * r * 7 + k * k * 13 + j * j * 5 + j * k * r) % 9] for j in range(9))
                    for k in range(14)
                )
                if r >= AT
                else f"the quick brown fox {r} jumps over {r * 7} lazy dogs and runs home"
            }
            if r % 20 == 0
            else {}
        ),
    ),
    Case(
        "repetition is logged",
        lambda p: p.base() | {"eval/repetition": sparse(p, p.share(p.late(0.1, 0.8)))},
        (Told("output.samples", "repetition", "sample.repetition", slack=20),),
    ),
)
