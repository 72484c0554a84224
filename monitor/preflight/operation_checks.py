"""Preflight of the operation: checkpoints, evaluation, logging, restarts, the first screen."""

from __future__ import annotations

from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.job.judging import duration
from trainmon.monitor.preflight.check_base import FACTOR, Seen, teller
from trainmon.monitor.preflight.plan import Plan
from trainmon.monitor.preflight.published import (
    FAILURE_SOURCE,
    best_interval_s,
    failures_apart_s,
    peak_flops,
    step_time_range,
)

# What a checkpoint costs when it is not known: half a minute is common for synchronous saves of large models.
_CHECKPOINT_COST_S = 30.0
_MOST_SHARE = 0.05  # of the time may go into saving


def checkpoints(plan: Plan, _seen: Seen) -> CheckResult:
    """The checkpoint interval against the expected time between failures: Young's interval."""
    say = teller("checkpoints", "Checkpoint Interval")
    interval = plan.number("checkpoint_interval")
    is_off = plan.values.get("saves") is False or plan.word("saves") == "no"
    if is_off or plan.values.get("checkpoint_interval") is False or interval == 0:
        return say(Verdict.FAIL, "no checkpoints", "a crash loses the whole run", "save one at least every hour")
    if interval is None and (each := plan.number("saves_per_epoch")):
        return say(Verdict.NO_DATA, f"{each:g} an epoch; how long an epoch takes is not told")
    seconds = plan.number("checkpoint_s") if interval is None else None
    if interval is None and seconds is None:
        return say(Verdict.NO_DATA, "no checkpoint interval told")
    total = plan.number("total_steps")
    if interval is None:
        interval = 0.0
    elif interval < 1:  # a share of the run, as HF has it
        interval = interval * (total or 0.0)
    steps = f"every {interval:,.0f} steps" if seconds is None else "by time"
    if total is not None and interval >= total > 0:
        return say(Verdict.WARN, f"{steps}, the run has {total:,.0f}", "only its end is saved", "save more often")
    times = (1.0, 1.0) if seconds is not None else _step_times(plan)
    world = plan.number("world_size")
    if times is None or not world:
        missing = "world size" if times is not None else "the time of a step"
        return say(Verdict.NO_DATA, f"{steps}; {missing} is not known: give --step-time or --gpus, or a log")
    count = interval if seconds is None else seconds
    least, most = count * times[0], count * times[1]
    failures = failures_apart_s(world)
    best = tuple(best_interval_s(_CHECKPOINT_COST_S, apart) for apart in failures)
    span = duration(least) if most < 1.2 * least else f"{duration(least)} to {duration(most)}"
    why = (
        f"{FAILURE_SOURCE}, so {world:,.0f} cards stop every {duration(failures[0])} to {duration(failures[1])}; "
        f"the least is lost when saving every {duration(best[0])} to {duration(best[1])} (Young 1974, at "
        f"{_CHECKPOINT_COST_S:.0f} s a checkpoint)"
    )
    if least > FACTOR * best[1]:
        steps_then = max(best[0] / times[1], 1.0)
        then = f"{steps_then:,.0f} steps or so" if seconds is None else duration(best[0])
        return say(Verdict.WARN, f"{steps}, {span} apart", why, f"save every {then}")
    if most < _CHECKPOINT_COST_S / _MOST_SHARE:
        share = f"{_CHECKPOINT_COST_S / most:.0%} of the time goes into saving at {_CHECKPOINT_COST_S:.0f} s each"
        return say(Verdict.WARN, f"{steps}, {span} apart, is often", share, "save less often, or asynchronously")
    return say(Verdict.PASS, f"{steps}, {span} apart", why)


def evaluation(plan: Plan, _seen: Seen) -> CheckResult:
    """How often held-out loss is measured: METRICS.md, every 0.5-2% of training."""
    say = teller("evaluation", "Evaluation Cadence")
    interval, total = plan.number("eval_interval"), plan.number("total_steps")
    if interval is None and (each := plan.number("evals_per_epoch")):
        return say(Verdict.PASS, f"{each:g} an epoch")
    if interval is None and plan.word("eval_strategy") in ("epoch", "steps"):
        return say(Verdict.PASS, f"by {plan.word('eval_strategy')}")
    if plan.number("peak_lr") is None and total is None and "epochs" not in plan.values:
        return say(Verdict.NO_DATA, "no settings of training here")
    if interval is None or interval <= 0:
        why = "without held-out loss, over-fitting and a broken data order look like progress"
        return say(Verdict.WARN, "no evaluation told", why, "evaluate every 0.5-2% of the steps")
    if not total:
        return say(Verdict.NO_DATA, f"every {interval:,.0f} steps; the total is not told")
    share = interval if interval < 1 else interval / total
    what = f"every {share * total:,.0f} steps ({share:.2%} of the run)"
    if share > 0.1:
        return say(Verdict.WARN, f"{what} is seldom", "fewer than ten points", "evaluate every 0.5-2% of the steps")
    return say(Verdict.PASS, what)


def logging(plan: Plan, _seen: Seen) -> CheckResult:
    """Whether every step is logged: a spike of one step is not seen at every tenth."""
    say = teller("logging", "Logging Interval")
    interval = plan.number("log_interval")
    if interval is None:
        return say(Verdict.NO_DATA, "no logging interval told")
    if interval <= 1:
        return say(Verdict.PASS, "every step")
    why = "a spike of one step is averaged away or missed, and trouble is known so many steps later"
    return say(
        Verdict.WARN, f"every {interval:,.0f} steps", why, "log loss and gradient norm every step; it costs nothing"
    )


def dead_time(plan: Plan, _seen: Seen) -> CheckResult:
    """What a restart costs, where a log tells."""
    say = teller("dead_time", "Dead Time at Restart")
    dead, world = plan.number("dead_time_s"), plan.number("world_size")
    if dead is None:
        return say(Verdict.NO_DATA, "known only from the log of a run that restarted")
    cost = f", {dead * world / 3600:,.1f} GPU-hours" if world else ""
    what = f"{duration(dead)} from the last step to the next{cost}"
    if dead > 900:
        return say(Verdict.WARN, what, "a restart should take minutes", "cache compiled graphs, load in parallel")
    return say(Verdict.PASS, what)


_FIRST = (
    ("loss.train", "loss"),
    ("grad.norm", "gradient norm"),
    ("optim.lr", "learning rate"),
    ("sys.step_time", "step time"),
    ("sys.tokens_per_second", "tokens/s"),
    ("sys.peak_memory", "peak memory"),
    ("eval.nll", "held-out loss"),
)


def first_screen(plan: Plan, seen: Seen) -> CheckResult:
    """Whether the signals of the first screen will be logged at all."""
    say = teller("first_screen", "First-screen Signals")
    if seen.logged is not None:
        gaps = [name for signal, name in _FIRST if signal not in seen.logged and not _equal(signal, seen.logged)]
        if not gaps:
            return say(Verdict.PASS, "all logged")
        return say(Verdict.WARN, f"not in the log: {', '.join(gaps)}", then="see `trainmon inventory` for each")
    framework = seen.framework
    if framework is None:
        return say(Verdict.NO_DATA, "the trainer is not told by these settings; see docs/logging.md for what to log")
    on = set(framework.logs) | {signal for signal, (key, _) in framework.switches.items() if key and _is_on(plan, key)}
    missing = [(signal, name) for signal, name in _FIRST if signal not in on and not _equal(signal, on)]
    if plan.number("eval_interval") and "eval.nll" not in on:
        missing = [pair for pair in missing if pair[0] != "eval.nll"]
    if not missing:
        return say(Verdict.PASS, f"{framework.name} logs them with these settings")
    hints = [f"{name}: {framework.switches[signal][1]}" for signal, name in missing if signal in framework.switches]
    rest = ", ".join(name for _, name in missing)
    return say(Verdict.WARN, f"{framework.name} will not log: {rest}", then="; ".join(hints) or "see docs/logging.md")


def _equal(signal: str, logged: frozenset[str] | set[str]) -> bool:
    """Whether another signal tells the same."""
    others = {
        "sys.step_time": ("sys.tokens_per_second",),
        "sys.tokens_per_second": ("sys.step_time", "sys.samples_per_second"),
        "sys.peak_memory": ("sys.memory_share", "sys.reserved_memory"),
        "eval.nll": ("eval.perplexity", "eval.bits_per_byte"),
    }
    return any(other in logged for other in others.get(signal, ()))


def _is_on(plan: Plan, key: str) -> bool:
    return any(
        value not in (False, 0.0)
        for name, value in plan.flat.items()
        if name.lower().replace("-", "_").replace(".", "/").endswith(key)
    )


def _step_times(plan: Plan) -> tuple[float, float] | None:
    known = plan.number("step_time_s")
    if known:
        return known, known
    size, tokens = plan.number("active_parameters") or plan.number("parameters"), plan.number("tokens_per_batch")
    world, flops = plan.number("world_size"), peak_flops(plan.word("gpu") or "")
    return step_time_range(size, tokens, world, flops) if size and tokens and world and flops else None
