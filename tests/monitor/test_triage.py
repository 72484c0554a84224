"""The walk stops at the first step that explains the symptom."""

from __future__ import annotations

from trainmon.monitor.finding import CheckResult, Verdict, reason_without_trouble
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.triage import walk

STEPS = {
    "job.state": "job",
    "loss.spike": "loss",
    "grad.norm": "gradients",
    "sys.memory": "memory",
    "moe.balance": "experts",
}


def result(name: str, verdict: Verdict, *, advisory: bool = False) -> CheckResult:
    return CheckResult(name, name, verdict, f"{name} says {verdict.value}", advisory=advisory)


def explaining(*checks: CheckResult) -> str | None:
    return next((step.id for step in walk(checks, STEPS, (), {}) if step.explains), None)


def test_the_first_step_with_the_worst_verdict_explains() -> None:
    warn = result("loss.spike", Verdict.WARN)
    fail = result("sys.memory", Verdict.FAIL)
    assert explaining(warn, fail) == "memory"
    assert explaining(warn, result("sys.memory", Verdict.PASS)) == "loss"


def test_advice_and_missing_data_explain_nothing() -> None:
    checks = (result("grad.norm", Verdict.WARN, advisory=True), result("loss.spike", Verdict.PASS))
    assert explaining(*checks) is None
    steps = {step.id: step for step in walk(checks, STEPS, (), {SignalKey("grad.norm"): None})}
    assert steps["gradients"].verdict is Verdict.PASS
    assert steps["memory"].verdict is Verdict.NO_DATA


def test_advice_is_told_beside_what_is_fine() -> None:
    """A norm that is well while every step is clipped: who reads the step reads of both."""
    advice = CheckResult("clip", "", Verdict.WARN, "all steps are clipped", next="raise the threshold", advisory=True)
    checks = (result("grad.norm", Verdict.PASS), advice)
    steps = walk(checks, {"grad.norm": "gradients", "clip": "gradients"}, (), {SignalKey("grad.norm"): None})
    step = next(step for step in steps if step.id == "gradients")
    assert step.verdict is Verdict.PASS
    assert (step.what, step.next) == ("grad.norm says PASS; all steps are clipped", "raise the threshold")


def test_a_step_advises_what_its_worst_finding_does() -> None:
    lost = CheckResult("nan", "", Verdict.FAIL, "all is NaN", next="stop")
    spike = CheckResult("spike", "", Verdict.WARN, "it rose", next="look before stopping")
    of = {"nan": "loss", "spike": "loss"}
    step = next(step for step in walk((spike, lost), of, (), {}) if step.id == "loss")
    assert (step.what, step.next) == ("all is NaN; it rose", "stop")
    mute = CheckResult("nan", "", Verdict.FAIL, "all is NaN")
    step = next(step for step in walk((spike, mute), of, (), {}) if step.id == "loss")
    assert step.next == "look before stopping"


def test_what_does_not_apply_is_not_a_gap() -> None:
    steps = {step.id: step for step in walk((result("moe.balance", Verdict.NOT_APPLICABLE),), STEPS, (), {})}
    assert steps["experts"].verdict is Verdict.NOT_APPLICABLE


def test_without_a_gradient_norm_its_step_cannot_be_judged() -> None:
    advice = CheckResult("grad.norm", "Gradient Norm", Verdict.WARN, "flying blind", next="log it", advisory=True)
    steps = {step.id: step for step in walk((advice, result("loss.spike", Verdict.PASS)), STEPS, (), {})}
    assert steps["gradients"].verdict is Verdict.NO_DATA
    assert steps["gradients"].what == "cannot be judged: no gradient norm in the log"
    assert steps["gradients"].next == "log it"


def test_a_step_is_not_fine_for_what_its_settings_are() -> None:
    checks = (
        CheckResult("loss.spike", "", Verdict.NO_DATA, "no training loss in the log"),
        CheckResult("batch.ratio", "", Verdict.PASS, "262,144 tokens a batch"),
        CheckResult("rl.health", "", Verdict.NOT_APPLICABLE, "no reinforcement learning"),
    )
    of_check = dict.fromkeys(("loss.spike", "batch.ratio", "rl.health", "loss.shift"), "loss")
    steps = {step.id: step for step in walk(checks, of_check, (), {})}
    assert (steps["loss"].verdict, steps["loss"].what) == (Verdict.NO_DATA, "no training loss in the log")
    judged = (*checks, CheckResult("loss.shift", "", Verdict.PASS, "level"))
    assert {step.id: step for step in walk(judged, of_check, (), {})}["loss"].verdict is Verdict.PASS


def test_several_texts_are_told_apart_and_each_once() -> None:
    checks = (
        CheckResult("loss.spike", "", Verdict.WARN, "loss rose (recovered)", next="wait"),
        CheckResult("loss.shift", "", Verdict.FAIL, "loss stayed up (not recovered)", next="wait"),
    )
    steps = {step.id: step for step in walk(checks, {"loss.spike": "loss", "loss.shift": "loss"}, (), {})}
    assert steps["loss"].what == "loss stayed up (not recovered); loss rose (recovered)"
    assert steps["loss"].next == "wait"


def test_a_run_that_passes_says_that_there_is_advice() -> None:
    fine, advice = result("loss.spike", Verdict.PASS), result("lr.schedule", Verdict.WARN, advisory=True)
    assert reason_without_trouble(Verdict.PASS, (fine,)) == "nothing wrong found"
    assert reason_without_trouble(Verdict.PASS, (fine, advice)) == "nothing wrong found; advice on lr.schedule"
    assert reason_without_trouble(Verdict.FAIL, (fine, advice), "it broke") == "it broke"
