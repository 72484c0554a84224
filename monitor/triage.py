"""The walk of METRICS.md: job state, loss, gradients, step time, memory, experts, layers; stops where it explains.

Each step gathers the checks whose detectors speak for it. A step without data says which key would fill it
and never blocks the walk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from trainmon.monitor.finding import CheckResult, Episode, Verdict, worst
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import TRIAGE_ORDER, TriageStep

TITLES = {
    "job": "Job state",
    "loss": "Loss",
    "gradients": "Gradient norm and spikes",
    "step_time": "Step time",
    "memory": "Memory",
    "experts": "Expert balance",
    "layers": "Layers and tensors",
}
_CHARTS: dict[str, tuple[str, ...]] = {
    "job": ("loss.train",),
    "loss": ("loss.train", "eval.nll", "loss.worst_rank"),
    "gradients": ("grad.norm", "loss.train", "grad.clip_rate", "optim.lr"),
    "step_time": ("sys.step_time", "sys.tokens_per_second"),
    "memory": ("sys.peak_memory", "sys.memory_share"),
    "experts": ("moe.maxvio", "moe.imbalance", "moe.entropy"),
    "layers": ("tensor.abs_max", "update.ratio", "tensor.rms"),
}
# Without these a step of the walk cannot be judged, whatever its other checks say: signal -> what is said then.
_VITAL: dict[str, dict[str, str]] = {"gradients": {"grad.norm": "no gradient norm in the log"}}
# They judge settings and machines: that they find nothing does not say that their step's symptom was looked for.
_ASIDE = frozenset({"batch.ratio", "run.changes", "run.rewarm", "sys.devices"})
# Advice about settings explains no symptom; it is listed under its step and does not end the walk.
_RANK = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.NO_DATA: 2, Verdict.PASS: 3, Verdict.NOT_APPLICABLE: 4}


def walk(
    checks: Sequence[CheckResult],
    step_of_check: Mapping[str, str],
    episodes: Sequence[Episode],
    series: Mapping[SignalKey, object],
) -> tuple[TriageStep, ...]:
    """The steps in order, the first that explains the symptom marked. `step_of_check`: check id -> step of the walk.

    The symptom is the worst verdict found anywhere; the first step of the walk that carries it explains it, so
    that a WARN on the way to a FAIL is reported but not taken for the cause.
    """
    steps = [_step(step, checks, step_of_check, episodes, series) for step in TRIAGE_ORDER]
    symptom = worst([step.verdict for step in steps])
    if symptom not in (Verdict.FAIL, Verdict.WARN):
        return tuple(steps)
    at = next(index for index, step in enumerate(steps) if step.verdict is symptom)
    found = steps[at]
    steps[at] = TriageStep(
        found.id, found.title, found.verdict, found.what, found.why, found.next, found.signals, found.episodes, True
    )
    return tuple(steps)


def _joined(texts: Iterable[str]) -> str:
    """Several texts as one, each once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def _is_charted(signal: str, series: Mapping[SignalKey, object]) -> bool:
    return any(key.signal == signal for key in series)


def _unknown(checks: Sequence[CheckResult]) -> list[CheckResult]:
    """Those without data, where none that looks at a symptom had any; else empty."""
    if any(check.verdict is Verdict.PASS and check.id not in _ASIDE for check in checks):
        return []
    return [check for check in checks if check.verdict is Verdict.NO_DATA]


def _step(
    step: str,
    checks: Sequence[CheckResult],
    step_of_check: Mapping[str, str],
    episodes: Sequence[Episode],
    series: Mapping[SignalKey, object],
) -> TriageStep:
    mine = [check for check in checks if step_of_check.get(check.id, "layers") == step]
    counted = [Verdict.PASS if check.advisory and check.verdict is Verdict.WARN else check.verdict for check in mine]
    verdict = worst(counted) if counted else Verdict.NO_DATA
    if counted and verdict is Verdict.NO_DATA and all(found is Verdict.NOT_APPLICABLE for found in counted):
        verdict = Verdict.NOT_APPLICABLE
    telling = sorted(mine, key=lambda check: (_RANK[check.verdict], check.advisory))
    if verdict is Verdict.PASS:
        telling = [check for check in telling if check.verdict is Verdict.PASS] + [
            check for check in telling if check.verdict is not Verdict.PASS
        ]
    blind = next((signal for signal in _VITAL.get(step, ()) if counted and not _is_charted(signal, series)), None)
    if blind is not None and verdict is Verdict.PASS:
        verdict = Verdict.NO_DATA
        telling = [check for check in telling if check.advisory and check.verdict is Verdict.WARN] or telling
        advice = telling[0].next if telling and telling[0].advisory else ""
        return TriageStep(step, TITLES[step], verdict, f"cannot be judged: {_VITAL[step][blind]}", "", advice)
    if verdict is Verdict.PASS and (unknown := _unknown(mine)):
        verdict, telling = Verdict.NO_DATA, unknown
    loud = [check for check in telling if check.verdict in (Verdict.FAIL, Verdict.WARN)]
    shown = loud if loud and verdict is not Verdict.PASS else [*telling[:1], *(one for one in loud if one.advisory)]
    # What lesser findings advise may be the opposite of what the worst one does.
    advising = [check for check in shown if check.verdict is verdict and check.next] or shown
    ids = {check.id for check in mine}
    related = tuple(episode.id for episode in episodes if episode.check in ids)
    charts = [key for episode in episodes if episode.check in ids for key in (episode.signal,) if key in series]
    for name in _CHARTS[step]:
        charts += [key for key in series if key.signal == name]
    return TriageStep(
        id=step,
        title=TITLES[step],
        verdict=verdict,
        what=_joined(check.what for check in shown) or "nothing in the log speaks of it",
        why=_joined(check.why for check in shown),
        next=_joined(check.next for check in advising),
        signals=tuple(dict.fromkeys(charts))[:6],
        episodes=related,
    )
