"""Faults of loss, gradients and learning rate."""

from __future__ import annotations

import math

import numpy as np

from tests.monitor.faults.shape import AT, Case, Columns, N, Plan, Told
from trainmon.monitor.finding import Severity
from trainmon.tails.record import FloatArray

INFO, WARN, FAIL = Severity.INFO, Severity.WARN, Severity.FAIL
FIRST = AT + 1


def peak(plan: Plan, height: float, length: float) -> FloatArray:
    """A jump to `height` times at AT that falls back over `length` records."""
    since = plan.i - AT
    return np.where(since >= 0, 1 + (height - 1) * np.exp(-np.maximum(since, 0) / length), 1.0)


def _rank_losses(plan: Plan) -> Columns:
    base = plan.base()
    for rank in range(6):
        loss = base["opt/lm_loss"] * plan.noisy(1.0, 0.01)
        base[f"rank{rank}/loss"] = loss * plan.late(1.0, 1.5) if rank == 4 else loss
    return base


def _source_losses(plan: Plan) -> Columns:
    base = plan.base()
    for name, level, share in (("wiki", 1.0, 0.3), ("code", 0.7, 0.2), ("web", 1.05, 0.5)):
        loss = base["opt/lm_loss"] * level * plan.noisy(1.0, 0.01)
        base[f"loss/source/{name}"] = loss * plan.late(1.0, 1.35) if name == "code" else loss
        base[f"source/{name}/token_share"] = plan.share(share, 0.01)
    return base


def _modality_losses(plan: Plan) -> Columns:
    base = plan.base()
    for name, level, share in (("text", 1.0, 0.8), ("image", 1.6, 0.2)):
        loss = base["opt/lm_loss"] * level * plan.noisy(1.0, 0.01)
        base[f"loss/{name}"] = loss * plan.late(1.0, 1.35) if name == "image" else loss
        base[f"{name}_token_share"] = plan.share(share, 0.01)
    return base


def _divergence(plan: Plan) -> Columns:
    rise = np.exp(np.minimum(np.maximum(plan.i - AT, 0) * 0.01, 2.5))
    return plan.base(loss=plan.loss() * rise)


def _drift(plan: Plan) -> Columns:
    flat = 1.9 + 8.0 * 530.0**-0.35
    rise = 1 + 0.15 * np.maximum(plan.i - 500, 0) / 900
    loss = np.where(plan.i < 500, plan.loss(), plan.noisy(flat, 0.008) * rise)
    return plan.base(loss=loss)


def _stuck(plan: Plan, *, lr_falls: bool = False) -> Columns:
    curve = 1.5 + 9.0 * (plan.i + 30.0) ** -0.4
    loss = plan.noisy(np.maximum(curve, curve[250]), 0.006)
    lr = 4e-4 * np.minimum((plan.i + 1) / 120, 1.0)
    return plan.base(loss=loss, lr=lr * np.where(plan.i < 250, 1.0, 0.02) if lr_falls else lr)


def _element(plan: Plan) -> Columns:
    return plan.base() | {"grad/abs_max": plan.noisy(plan.late(0.4, 40.0), 0.2), "grad/abs_mean": plan.noisy(1e-4, 0.1)}


def _short_warmup(plan: Plan) -> Columns:
    return plan.base(lr=4e-4 * np.minimum((plan.i + 1) / 5, 1.0))


def _loss(plan: Plan, factor: FloatArray) -> Columns:
    return plan.base(loss=plan.loss() * factor)


CASES = (
    Case(
        "loss spike that recovers fast",
        lambda p: _loss(p, p.only(AT, AT + 2, 1.6)),
        (Told("loss.spike", "spike", "loss.train", recovered=True, worst=(FIRST, FIRST + 2)),),
    ),
    Case(
        "loss spike that recovers slowly",
        lambda p: _loss(p, peak(p, 1.8, 60.0)),
        (Told("loss.spike", "spike", "loss.train", recovered=True, worst=(FIRST, FIRST + 5)),),
    ),
    Case(
        "loss spike that does not recover",
        lambda p: _loss(p, p.late(1.0, 1.6)),
        (Told("loss.spike", "spike", "loss.train", FAIL, pages=True),),
        advice=("0.0002 (0.5 times the 0.0004 at step 901)",),
    ),
    Case(
        "loss level shift",
        lambda p: _loss(p, p.late(1.0, 1.08)),
        (Told("loss.shift", "level_shift", "loss.train", slack=8, recovered=None),),
    ),
    Case(
        "a jump while the loss still falls steeply",
        lambda p: p.base(loss=p.noisy(1.9 + 60.0 * (p.i + 30.0) ** -0.6, 0.008) * p.only(90, 92, 1.8)),
        (Told("loss.spike", "spike", "loss.train", first=91, recovered=True, worst=(91, 93)),),
    ),
    Case("loss drift", _drift, (Told("loss.drift", "drift", "loss.train", first=501, slack=100),)),
    Case(
        "divergence",
        _divergence,
        (Told("loss.drift", "climb", "loss.train", FAIL, slack=60, pages=True),),
    ),
    Case(
        "loss turns NaN for good",
        lambda p: p.base(loss=np.where(p.i < AT, p.loss(), np.nan)),
        (Told("loss.nonfinite", "nonfinite", "loss.train", FAIL, pages=True),),
        extra=lambda row: {"opt/lm_loss": math.nan} if row >= AT else {},
    ),
    Case(
        "one NaN that recovers",
        lambda p: p.base(),
        (Told("loss.nonfinite", "nonfinite", "loss.train", WARN, recovered=True),),
        extra=lambda row: {"opt/lm_loss": math.nan} if row == AT else {},
    ),
    Case(
        "loss turns null",
        lambda p: p.base(),
        (Told("loss.nonfinite", "null_loss", "loss.train", FAIL, pages=True),),
        extra=lambda row: {"opt/lm_loss": None} if row >= AT else {},
    ),
    Case(
        "loss is zeroed",
        lambda p: p.base(loss=p.loss() * p.late(1.0, 0.0)),
        (Told("loss.nonfinite", "zero_loss", "loss.train", FAIL, pages=True),),
        beside=("grad.norm",),
        extra=lambda row: {"opt/grad_norm": math.nan} if row >= AT else {},
    ),
    Case(
        "loss vanishes",
        lambda p: p.base(loss=np.where(p.i < AT, p.loss(), np.nan)),
        (Told("loss.nonfinite", "vanished", "loss.train", FAIL, pages=True),),
    ),
    Case("plateau", _stuck, (Told("loss.plateau", "plateau", "loss.train", first=251, slack=100),)),
    Case("no plateau when the learning rate was decayed", lambda p: _stuck(p, lr_falls=True), ()),
    Case(
        "a rank leaves the pack",
        _rank_losses,
        (Told("loss.groups", "group_shift", "loss.rank", FAIL, labels={"rank": "4"}, slack=8, pages=True),),
        advice=("rank 4",),
    ),
    Case(
        "a source gets worse under a flat mean",
        _source_losses,
        (
            Told(
                "loss.groups",
                "group_shift",
                "loss.source",
                FAIL,
                labels={"source": "code"},
                slack=8,
                pages=True,
                says=("flat", "share of the tokens"),
            ),
        ),
    ),
    Case(
        "a modality gets worse",
        _modality_losses,
        (
            Told(
                "loss.groups",
                "group_shift",
                "loss.modality",
                FAIL,
                labels={"modality": "image"},
                slack=8,
                pages=True,
                says=("share of the tokens",),
            ),
        ),
    ),
    Case(
        "lone gradient spike",
        lambda p: p.base(grad=p.noisy(0.45, 0.12) * p.only(AT, AT, 30.0)),
        (Told("grad.norm", "spike", "grad.norm", INFO, recovered=True),),
    ),
    Case(
        "co-spike",
        lambda p: p.base(loss=p.loss() * p.only(AT, AT, 1.6), grad=p.noisy(0.45, 0.12) * p.only(AT, AT, 30.0)),
        (Told("spike.co", "co_spike", "spike.co_count", recovered=True),),
        beside=("loss.spike",),
        beside_must=("loss.spike",),
    ),
    Case(
        "clip rate rises",
        lambda p: p.base(grad=p.noisy(p.late(0.7, 1.05, 300), 0.15)),
        (Told("grad.clip_rate", "clip_rate", "grad.clip_rate", first=301, slack=100),),
    ),
    Case("one element explodes", _element, (Told("grad.elements", "element", "grad.abs_max"),)),
    Case(
        "the gradient level jumps a hundredfold",
        lambda p: p.base(grad=p.noisy(0.45 * p.late(1.0, 300.0), 0.12)),
        (Told("grad.norm", "grad_level", "grad.norm", FAIL, pages=True),),
        beside=("grad.clip_rate",),
    ),
    Case(
        "the gradient dies",
        lambda p: p.base(grad=p.noisy(0.45, 0.12) * p.late(1.0, 0.0)),
        (Told("grad.dead", "dead_gradient", "grad.norm"),),
    ),
    Case(
        "zero gradients in one part",
        lambda p: (
            p.base() | {"grad/zero_fraction/embed": p.share(0.9), "grad/zero_fraction/mlp": p.share(p.late(0.05, 0.7))}
        ),
        (Told("grad.dead", "zero_gradients", "grad.zero_fraction", labels={"part": "mlp"}, slack=8),),
    ),
    Case(
        "loss scale collapses",
        lambda p: (
            p.base() | {"amp/loss_scale": np.maximum(65536.0 * 0.5 ** np.maximum(np.floor((p.i - AT) / 4), 0), 1.0)}
        ),
        (Told("numerics.loss_scale", "loss_scale", "optim.loss_scale", FAIL, slack=8),),
    ),
    Case(
        "steps are skipped",
        lambda p: p.base() | {"amp/skipped_steps": np.where(p.i < AT, 0.0, np.floor((p.i - AT) / 4))},
        (Told("numerics.loss_scale", "skips", "count.skipped_steps", slack=8),),
    ),
    Case(
        "the learning rate jumps",
        lambda p: p.base(lr=4e-4 * np.minimum((p.i + 1) / 120, 1.0) * p.late(1.0, 6.0)),
        (Told("lr.schedule", "lr_jump", "optim.lr", recovered=True),),
    ),
    Case(
        "no warm-up",
        lambda p: p.base(lr=np.full(N, 4e-4)),
        (),
        beside=("lr.schedule",),
        beside_must=("lr.schedule",),
        advice=("Warm up over 2-5% of the steps (about 42)",),
    ),
    Case(
        "a short warm-up",
        _short_warmup,
        (),
        beside=("lr.schedule",),
        beside_must=("lr.schedule",),
        advice=("400 to 1,000 steps",),
        head={"event": "start", "max_steps": 20_000, "seed": 1, "optimizer": "adamw"},
    ),
)
