"""Preflight of the recipe: warm-up, rates, batch, schedule, clipping, precision, optimizer."""

from __future__ import annotations

from trainmon.monitor.detectors.recipes import critical_batch_tokens, recipe_batch_tokens, recipe_peak_lr
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.preflight.check_base import FACTOR, Say, Seen, count, teller
from trainmon.monitor.preflight.plan import Plan
from trainmon.monitor.preflight.published import TUNING_LR

_LR_SPREAD = 3.0  # published families lie up to 3x above the fit
_SHORT_STEPS = 2_000.0
_FAMILIES = "GPT-3, Llama, OLMo, Pythia"


def warm_up(plan: Plan, seen: Seen) -> CheckResult:
    """Warm-up against total steps: METRICS.md, LR Schedule."""
    say = teller("warm_up", "Warm-up")
    warm, total = plan.number("warmup_steps"), plan.number("total_steps")
    if warm is None and (share_told := plan.number("warmup_ratio")):
        return say(Verdict.NO_DATA, f"{share_told:.1%} of the steps, of which the number is not told")
    if warm is None and "warmup_steps" not in plan.values and total is None:
        return say(Verdict.NO_DATA, "neither warm-up nor total steps are told")
    if warm is None and seen.logged is not None and plan.number("peak_lr") is None:
        return say(Verdict.NO_DATA, "neither in settings nor to be seen in the rates of the log")
    if not warm:
        why = "without warm-up Adam's first steps are as large as its later ones, on estimates of a few batches"
        return say(Verdict.WARN, "no warm-up", why, "warm up over 2-5% of the steps, 2,000 at most for most models")
    if total is None:
        return say(Verdict.NO_DATA, f"{warm:,.0f} steps; the total is not told")
    share = warm / total
    what = f"{warm:,.0f} of {total:,.0f} steps ({share:.2%})"
    if warm >= total:
        return say(Verdict.FAIL, f"{what}: the learning rate never reaches its peak", then="shorten the warm-up")
    if share < 0.01 and warm < _SHORT_STEPS:
        return say(Verdict.WARN, f"{what} is short", "under 1% of the steps and under 2,000", "use 2-5% of the steps")
    if share > 0.2:
        return say(Verdict.WARN, f"{what} is long", "over a fifth of the run is spent below the peak", "use 2-5%")
    return say(Verdict.PASS, what)


def peak_lr(plan: Plan, _seen: Seen) -> CheckResult:
    """Peak learning rate against the model's size."""
    say = teller("peak_lr", "Peak Learning Rate")
    peak, size = plan.number("peak_lr"), plan.number("active_parameters") or plan.number("parameters")
    if peak is None:
        return say(Verdict.NO_DATA, "no learning rate told")
    if plan.tunes and _is_adam(plan):
        return _tuning_lr(say, peak, plan.tunes)
    if size is None or size < 1e6:
        return say(Verdict.NO_DATA, f"{peak:g}; the model's size is not told")
    usual = recipe_peak_lr(size)
    low, high = usual / _LR_SPREAD, usual * _LR_SPREAD
    why = f"published runs of {count(size)} parameters ({_FAMILIES}) use {low:.1e} to {high:.1e} with Adam"
    if not _is_adam(plan):
        return say(Verdict.NOT_APPLICABLE, f"{peak:g}; the ranges are those of Adam, not of {plan.word('optimizer')}")
    if peak > high * 1.5:
        return say(Verdict.WARN, f"{peak:g} is high", why, f"try {usual:.1e}; a higher peak needs a longer warm-up")
    if peak < low / FACTOR:
        return say(
            Verdict.WARN, f"{peak:g} is low", f"{why}; fine-tuning uses less", f"for pretraining try {usual:.1e}"
        )
    return say(Verdict.PASS, f"{peak:g}{', a little above these' if peak > high else ''}", why)


def _tuning_lr(say: Say, peak: float, tunes: str) -> CheckResult:
    low, high, source = TUNING_LR[tunes]
    why = f"published tuning of {tunes} uses {low:.0e} to {high:.0e} ({source})"
    if peak > FACTOR * high:
        return say(Verdict.WARN, f"{peak:g} is high for training further", why, f"try {high:.0e} or less")
    if peak < low / FACTOR:
        return say(Verdict.WARN, f"{peak:g} is low for training further", why, f"try {low:.0e} or more")
    return say(Verdict.PASS, f"{peak:g}", why)


def batch(plan: Plan, _seen: Seen) -> CheckResult:
    """Tokens a batch against the model's size: METRICS.md, Batch Size Ratio."""
    say = teller("batch", "Batch Size")
    tokens, size = plan.number("tokens_per_batch"), plan.number("active_parameters") or plan.number("parameters")
    if tokens is None:
        missing = [name for name in ("batch_size", "seq_length") if plan.number(name) is None]
        if "batch_size" in missing and plan.number("micro_batch"):
            missing[0] = "the number of cards (--gpus)"
        return say(Verdict.NO_DATA, f"tokens a batch unknown: {' and '.join(missing) or 'the batch'} not told")
    if size is None or size < 1e6:
        return say(Verdict.NO_DATA, f"{tokens:,.0f} tokens; the model's size is not told")
    low, high = recipe_batch_tokens(size)
    why = (
        f"published runs of {count(size)} parameters ({_FAMILIES}) use {count(low)} to {count(high)} tokens a batch;"
        f" the critical batch is {count(critical_batch_tokens(4.0))} at a loss of 4 and"
        f" {count(critical_batch_tokens(2.5))} at 2.5 (Kaplan et al. 2020)"
    )
    if tokens > high * FACTOR:
        return say(Verdict.WARN, f"{tokens:,.0f} tokens is large", why, f"more steps of {count(high)} learn more")
    if tokens < low / FACTOR:
        return say(Verdict.WARN, f"{tokens:,.0f} tokens is small", why, f"accumulate to {count(low)} tokens")
    return say(Verdict.PASS, f"{tokens:,.0f} tokens", why)


def tokens_per_parameter(plan: Plan, _seen: Seen) -> CheckResult:
    """Training tokens against the model's size (Hoffmann et al. 2022: about 20 are compute-optimal)."""
    say = teller("tokens", "Training Tokens")
    total, size = plan.number("total_tokens"), plan.number("parameters")
    if total is None or size is None or size < 1e6:
        return say(Verdict.NO_DATA, "total tokens or the model's size are not told")
    ratio = total / size
    what = f"{count(total)} tokens for {count(size)} parameters ({ratio:.3g} a parameter)"
    if ratio < 2:
        return say(Verdict.WARN, what, "compute-optimal is about 20 (Hoffmann et al. 2022)", "is this a trial run?")
    return say(Verdict.PASS, what, "about 20 are compute-optimal; small models for use are trained on 100 to 2,000")


def schedule(plan: Plan, _seen: Seen) -> CheckResult:
    """The shape of the schedule and whether it ends where the run does."""
    say = teller("schedule", "LR Schedule Shape")
    shape, total, decay = plan.word("schedule"), plan.number("total_steps"), plan.number("decay_steps")
    if plan.values.get("decay_lr") is False:
        shape = "constant"
    peak, low = plan.number("peak_lr"), plan.number("min_lr")
    if decay and total and not 0.98 <= decay / total <= 1.02:
        what = f"decays over {decay:,.0f} steps, the run has {total:,.0f}"
        end = "the run ends before the rate is down" if decay > total else "the rest runs at the lowest rate"
        return say(Verdict.WARN, what, end, "let the decay end with the run")
    if peak and low and low > peak:
        return say(Verdict.FAIL, f"the lowest rate {low:g} lies above the peak {peak:g}", then="swap them")
    if shape is None and low is None and decay is None and plan.number("decay_ratio") is None:
        return say(Verdict.NO_DATA, "no schedule told")
    if shape and ("constant" in shape or shape == "warmuplr"):
        why = "the last decay gives a large part of the loss (Hägele et al. 2024)"
        return say(Verdict.WARN, "constant, without a decay", why, "decay over the last 10-20%, or cosine")
    if peak and low and low > 0.34 * peak:
        return say(Verdict.WARN, f"decays only to {low / peak:.0%} of the peak", "usual is 0-10%")
    told = f"{shape or 'decay'}" + (f" to {low / peak:.0%} of the peak" if peak and low is not None else "")
    return say(Verdict.PASS, told, "cosine, linear and warm-up-stable-decay are all normal")


def clipping(plan: Plan, _seen: Seen) -> CheckResult:
    """The clip threshold of the gradient norm."""
    say = teller("clip", "Gradient Clipping")
    clip = plan.number("clip")
    if clip is None:
        return say(Verdict.NO_DATA, "no clip threshold told; defaults differ: HF, Megatron and torchtitan clip at 1.0")
    if clip <= 0:
        return say(Verdict.WARN, "off", "one bad batch can undo hours", "clip the global norm at 1.0")
    if clip > 5:
        return say(Verdict.WARN, f"{clip:g} is loose", "published language-model runs clip at 0.3 to 1.0", "try 1.0")
    return say(Verdict.PASS, f"{clip:g}", "published language-model runs clip at 0.3 to 1.0")


def precision(plan: Plan, _seen: Seen) -> CheckResult:
    """fp16 against bf16, and loss scaling where it is needed."""
    say = teller("precision", "Precision")
    word = plan.word("precision") or ""
    half = plan.values.get("fp16") is True or word in ("fp16", "float16", "16", "16-mixed", "half", "16-true")
    brain = plan.values.get("bf16") in (True, "auto") or "bf16" in word or "bfloat16" in word
    gpu = plan.word("gpu") or ""
    if half and brain:
        return say(Verdict.FAIL, "both fp16 and bf16 are on", then="turn one of them off; bf16 where the card has it")
    if half:
        scale = plan.number("loss_scale")
        if word == "16-true":
            return say(Verdict.FAIL, "fp16 weights without loss scaling", "gradients underflow", "use bf16 or 16-mixed")
        fixed = f", loss scale fixed at {scale:g}" if scale and scale > 20 else ""
        why = "fp16 overflows at 65,504 and needs loss scaling; bf16 has the range of fp32"
        then = "use bf16" + (
            "" if "v100" not in gpu else "; this card has none, so watch the loss scale and skipped steps"
        )
        return say(Verdict.PASS if "v100" in gpu else Verdict.WARN, f"fp16{fixed}", why, then)
    if brain:
        return say(Verdict.PASS, "bf16")
    if word in ("32", "fp32", "float32", "32-true", "no"):
        return say(Verdict.PASS, "fp32", "two to eight times slower than bf16 on tensor cores")
    return say(Verdict.NO_DATA, "no precision told")


def optimizer(plan: Plan, _seen: Seen) -> CheckResult:
    """Adam's second moment for language models."""
    say = teller("optimizer", "Optimizer")
    beta2, decay = plan.number("beta2"), plan.number("weight_decay")
    if not _is_adam(plan):
        return say(Verdict.NOT_APPLICABLE, f"{plan.word('optimizer')}: no published ranges here")
    if beta2 is None and decay is None:
        return say(Verdict.NO_DATA, "neither beta2 nor weight decay told")
    told = ", ".join(
        f"{name} {value:g}" for name, value in (("beta2", beta2), ("weight decay", decay)) if value is not None
    )
    tokens = plan.number("tokens_per_batch") or 0.0
    if beta2 is not None and beta2 > 0.99 and tokens > 2.5e5:
        why = (
            "at large batches a slow second moment lags behind and loss spikes follow (GPT-3, Llama and OLMo use 0.95)"
        )
        return say(Verdict.WARN, told, why, "use beta2 0.95")
    return say(Verdict.PASS, told)


def _is_adam(plan: Plan) -> bool:
    word = plan.word("optimizer")
    return word is None or "adam" in word
