"""Findings to episodes and incidents."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from trainmon.monitor.alerts import AlertBook, incidents, story_of_end, wakes_a_person
from trainmon.monitor.finding import Finding, Incident, Severity
from trainmon.monitor.frame import SignalKey

LOSS = SignalKey("loss.train")
GRAD = SignalKey("grad.norm")


def said(action="open", step=100.0, value=5.0, signal=LOSS, kind="spike", severity=Severity.WARN, **more):  # type: ignore[no-untyped-def]
    return Finding(action, kind, signal, severity, step, value, int(step), "log", more.pop("attempt", 0), **more)


def test_one_fault_is_one_episode() -> None:
    book = AlertBook()
    book.apply("loss.spike", said(step=100, value=5.0, what="up"))
    for step, value in ((101, 7.0), (102, 6.0)):
        book.apply("loss.spike", said("grow", step=step, value=value))
    book.apply("loss.spike", said("recover", step=110, value=2.0))
    (episode,) = book.episodes()
    assert (episode.first_step, episode.worst_step, episode.last_step, episode.recovered) == (100, 101, 102, True)
    assert (episode.worst_value, episode.what, episode.line) == (7.0, "up", 100)


def test_opening_again_grows_what_is_open_and_begins_anew_after_recovery() -> None:
    book = AlertBook()
    book.apply("c", said(step=100))
    book.apply("c", said(step=105, severity=Severity.FAIL))
    assert [(e.first_step, e.last_step, e.severity) for e in book.episodes()] == [(100, 105, Severity.FAIL)]
    book.apply("c", said("recover", step=120))
    book.apply("c", said(step=300))
    assert [episode.first_step for episode in book.episodes()] == [100, 300]


def test_an_open_episode_does_not_swallow_the_next_attempts() -> None:
    book = AlertBook()
    book.apply("c", said(step=100))
    book.apply("c", said(step=50, attempt=1))
    assert [(e.attempt, e.first_step) for e in book.episodes()] == [(0, 100), (1, 50)]


def test_withdrawn_is_gone_and_what_was_never_open_stays_unsaid() -> None:
    book = AlertBook()
    book.apply("c", said(step=100))
    book.apply("c", said("withdraw", step=101))
    book.apply("c", said("grow", step=102))
    book.apply("c", said("recover", step=103))
    assert book.episodes() == ()


def test_first_step_may_reach_back() -> None:
    book = AlertBook()
    episode = book.apply("c", said(step=200, first_step=100.0, first_line=77))
    assert episode is not None
    assert (episode.first_step, episode.line, episode.last_step) == (100.0, 77, 200.0)
    grown = book.apply("c", said("grow", step=210, first_step=90.0))
    assert grown is not None
    assert (grown.id, grown.first_step) == (episode.id, 90.0)


def test_ids_are_stable_and_differ() -> None:
    ids = []
    for _ in range(2):
        book = AlertBook()
        for number in range(3):
            book.apply("c", said(step=100))
            book.apply("c", said("recover", step=101 + number))
        ids.append([episode.id for episode in book.episodes()])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 3


@pytest.mark.parametrize(
    ("signal", "kind", "values", "worst"),
    [
        (LOSS, "spike", (5.0, 9.0, 3.0), 9.0),
        (SignalKey("sys.tokens_per_second"), "level", (5.0, 9.0, 3.0), 3.0),
        (LOSS, "drop", (5.0, 9.0, 3.0), 3.0),
        (LOSS, "nonfinite", (5.0, math.nan, 9.0), math.nan),
        (LOSS, "nonfinite", (5.0, math.inf, 9.0), math.inf),
    ],
)
def test_the_worst_value(signal: SignalKey, kind: str, values: tuple[float, ...], worst: float) -> None:
    book = AlertBook()
    for step, value in enumerate(values):
        book.apply("c", said("grow" if step else "open", step=step, value=value, signal=signal, kind=kind))
    (episode,) = book.episodes()
    assert episode.worst_value == worst or (math.isnan(worst) and math.isnan(episode.worst_value))


def test_what_begins_together_is_one_incident() -> None:
    book = AlertBook()
    book.apply("grad.norm", said(step=2000, signal=GRAD, severity=Severity.INFO))
    book.apply("loss.spike", said(step=2001))
    book.apply("loss.spike", said("recover", step=2100))
    book.apply("loss.spike", said(step=2500))
    book.apply("loss.spike", said(step=2001, attempt=1))
    found = incidents(book.episodes())
    assert [len(incident.episodes) for incident in found] == [2, 1, 1]
    assert found[0].title == "training loss: spike at step 2,000, with gradient norm"
    assert (found[0].severity, found[0].first_step, found[0].recovered) == (Severity.WARN, 2000, False)
    assert all(episode.incident in {incident.id for incident in found} for episode in book.episodes())


def test_wide_logging_intervals_gather_wider() -> None:
    book = AlertBook()
    book.apply("c", said(step=1000))
    book.apply("d", said(step=1100, signal=GRAD))
    assert len(incidents(book.episodes())) == 2
    assert len(incidents(book.episodes({0: 50.0}))) == 1


def test_live_findings_stand_apart() -> None:
    book = AlertBook()
    book.apply("c", said(step=1000))
    book.apply("silence", said(step=1000, kind="silence", origin="live"))
    assert len(incidents(book.episodes())) == 2


def test_the_mix_of_detectors_does_not_matter() -> None:
    loss = [said(step=100), said("grow", step=101), said("recover", step=105), said(step=200)]
    grad = [said(step=99, signal=GRAD), said("recover", step=100, signal=GRAD)]
    one, other = AlertBook(), AlertBook()
    for finding in loss:
        one.apply("loss.spike", finding)
    for finding in grad:
        one.apply("grad.norm", finding)
    for finding in grad:
        other.apply("grad.norm", finding)
    for finding in loss:
        other.apply("loss.spike", finding)
    assert one.episodes() == other.episodes()


def test_a_copy_goes_its_own_way() -> None:
    book = AlertBook()
    book.apply("c", said(step=100))
    copied = book.copy()
    copied.apply("c", said("recover", step=110))
    copied.apply("d", said(step=100))
    assert [episode.recovered for episode in book.episodes()] == [False]
    assert len(copied.episodes()) == 2


@pytest.mark.parametrize(
    ("check", "signal", "severity", "rl", "pages"),
    [
        ("loss.spike", LOSS, Severity.FAIL, False, True),
        ("loss.spike", LOSS, Severity.WARN, False, False),
        ("grad.norm", SignalKey("grad.abs_max"), Severity.FAIL, False, False),
        ("job.state", SignalKey("job.state"), Severity.FAIL, False, True),
        ("job.state", SignalKey("job.state"), Severity.WARN, False, False),
        ("rl", SignalKey("policy.kl"), Severity.FAIL, True, True),
        ("rl", SignalKey("policy.kl"), Severity.FAIL, False, False),
        ("own", SignalKey("my key"), Severity.FAIL, False, False),
        ("numerics.abs_max", SignalKey("tensor.abs_max", (("site", "output"),)), Severity.FAIL, False, True),
        (
            "numerics.abs_max",
            SignalKey("tensor.abs_max", (("layer", "3"), ("site", "mlp"))),
            Severity.FAIL,
            False,
            False,
        ),
    ],
)
def test_who_is_woken(check: str, signal: SignalKey, severity: Severity, rl: bool, pages: bool) -> None:
    book = AlertBook()
    episode = book.apply(check, said(signal=signal, severity=severity))
    assert episode is not None
    assert wakes_a_person(episode, rl=rl) is pages
    assert incidents(book.episodes(), rl=rl)[0].pages is pages
    seen = tuple(replace(one, acknowledged=True) for one in book.episodes())
    assert not incidents(seen, rl=rl)[0].pages


# One story: what belongs together, what lies behind it.

SHARE = SignalKey("source.token_share", (("source", "code"),))
CODE = SignalKey("loss.source", (("source", "code"),))
MEMORY = SignalKey("sys.memory_share")
LAYER_4 = (("layer", "4"),)
NO_NUMBERS = {"severity": Severity.FAIL, "kind": "nonfinite"}


def gathered(*findings: tuple[str, Finding]) -> tuple[Incident, ...]:
    book = AlertBook()
    for check, finding in findings:
        book.apply(check, finding)
    return incidents(book.episodes())


def test_loss_gradient_and_data_share_at_one_step_are_one_story_and_one_page() -> None:
    (incident,) = gathered(
        ("loss.spike", said(step=2001, severity=Severity.FAIL)),
        ("grad.norm", said(step=2001, signal=GRAD, severity=Severity.INFO)),
        ("data.mix", said(step=2015, signal=SHARE, kind="mix_more")),  # a level is known to within some values
    )
    assert len(incident.episodes) == 3
    assert incident.pages
    assert "source code" in incident.cause
    assert incident.worst_step == 2001


def test_a_level_that_seems_to_begin_a_little_before_the_jump_is_the_same_story() -> None:
    assert len(gathered(("a", said(step=1990, kind="level_shift")), ("b", said(step=2004, signal=GRAD)))) == 1
    assert len(gathered(("a", said(step=1990)), ("b", said(step=2004, signal=GRAD)))) == 2


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([("loss.spike", said(step=100)), ("grad.norm", said(step=95, signal=GRAD))], "gradient norm moved before"),
        ([("loss.spike", said(step=100)), ("lr.schedule", said(step=100, kind="lr_jump"))], "learning rate jumped"),
        ([("loss.spike", said(step=100)), ("run.restarts", said(step=99, kind="restart"))], "restart at step 99"),
        (
            [
                ("sys.step_time", said(step=100, kind="slow", signal=SignalKey("sys.step_time"))),
                ("sys.straggler", said(step=100, signal=SignalKey("sys.straggler", (("rank", "7"),)))),
            ],
            "rank 7",
        ),
        (
            [
                ("loss.nonfinite", said(step=100, kind="nonfinite")),
                ("numerics.loss_scale", said(step=98, kind="loss_scale", signal=SignalKey("optim.loss_scale"))),
            ],
            "low precision",
        ),
        (
            [
                ("moe.balance", said(step=98, signal=SignalKey("moe.maxvio", (("layer", "4"),)))),
                ("loss.shift", said(step=100, kind="level_shift")),
            ],
            "router",
        ),
        (
            [
                ("sys.memory", said(step=100, kind="memory_creep", signal=MEMORY)),
                ("sys.memory", said(step=9000, kind="memory_high", signal=MEMORY)),
            ],
            "memory that keeps growing",
        ),
        (
            [
                ("moe.balance", said(step=100, kind="entropy", signal=SignalKey("moe.entropy", LAYER_4))),
                ("moe.balance", said(step=400, kind="imbalance", signal=SignalKey("moe.maxvio", LAYER_4))),
            ],
            "its entropy fell at step 100, and MaxVio (layer 4) followed at step 400",
        ),
        (
            [
                (
                    "loss.groups",
                    said(kind="group_shift", signal=CODE, detail={"token_share": 0.3, "token_share_before": 0.3}),
                )
            ],
            "look at source code and its files since step 100; its share of the tokens stayed at 30.0%",
        ),
        (
            [
                (
                    "loss.groups",
                    said(kind="group_shift", signal=CODE, detail={"token_share": 0.1, "token_share_before": 0.3}),
                )
            ],
            "its share of the tokens went from 30.0% to 10.0%",
        ),
        ([("loss.groups", said(kind="group_shift", signal=CODE))], "its share of the tokens (not logged)"),
        ([("loss.spike", said(step=100))], ""),
        ([("grad.norm", said(step=100, signal=GRAD, severity=Severity.INFO))], ""),
    ],
)
def test_the_likely_cause(findings: list[tuple[str, Finding]], words: str) -> None:
    (incident,) = gathered(*findings)
    assert words in incident.cause
    assert bool(words) == bool(incident.cause)


def test_what_followed_too_late_or_elsewhere_or_was_over_is_a_story_of_its_own() -> None:
    entropy = SignalKey("moe.entropy", LAYER_4)
    first = ("moe.balance", said(step=100, kind="entropy", signal=entropy))
    other_layer = SignalKey("moe.maxvio", (("layer", "5"),))
    assert len(gathered(first, ("moe.balance", said(step=400, kind="imbalance", signal=other_layer)))) == 2
    flooded = ("moe.balance", said(step=4000, kind="imbalance", signal=SignalKey("moe.maxvio", LAYER_4)))
    assert len(gathered(first, flooded)) == 2
    over = ("sys.memory", said("recover", step=200, kind="memory_creep", signal=MEMORY))
    creep = ("sys.memory", said(step=100, kind="memory_creep", signal=MEMORY))
    high = ("sys.memory", said(step=900, kind="memory_high", signal=MEMORY))
    assert len(gathered(creep, over, high)) == 2
    assert len(gathered(creep, ("sys.memory", said(step=900, kind="memory_high", signal=MEMORY, attempt=1)))) == 2


def test_a_story_whose_worst_came_later_is_titled_with_both_steps() -> None:
    (incident,) = gathered(
        ("moe.balance", said(step=100, kind="entropy", signal=SignalKey("moe.entropy"))),
        ("moe.balance", said(step=400, kind="imbalance", signal=SignalKey("moe.maxvio"), severity=Severity.FAIL)),
        ("loss.shift", said(step=405, kind="level_shift", severity=Severity.WARN)),
    )
    assert incident.title == "MaxVio: imbalance at step 400, with training loss (router entropy since step 100)"
    assert incident.first_step == 100


def test_a_snoozed_episode_does_not_page() -> None:
    book = AlertBook()
    book.apply("loss.spike", said(severity=Severity.FAIL))
    snoozed = tuple(replace(one, snoozed_until=1e9) for one in book.episodes())
    assert incidents(book.episodes())[0].pages
    assert not incidents(snoozed)[0].pages


def test_the_end_of_a_job_belongs_to_the_fault_it_died_of() -> None:
    book = AlertBook()
    book.apply("loss.nonfinite", said(step=900, **NO_NUMBERS))
    book.apply("loss.nonfinite", said("grow", step=1000, **NO_NUMBERS))
    book.apply("grad.norm", said(step=300, signal=GRAD, severity=Severity.FAIL, kind="grad_level"))
    book.apply("grad.norm", said("recover", step=400, signal=GRAD, kind="grad_level"))
    (early, late) = book.episodes()
    assert story_of_end(book.episodes(), 0, 1003.0) == late.incident
    assert story_of_end(book.episodes(), 0, 1500.0) is None
    assert story_of_end(book.episodes(), 1, 1003.0) is None
    assert early.incident != late.incident


@pytest.mark.parametrize(("severity", "word"), [(Severity.WARN, "drift"), (Severity.FAIL, "divergence")])
def test_a_drift_that_is_a_fail_is_called_divergence(severity: Severity, word: str) -> None:
    book = AlertBook()
    book.apply("loss.drift", Finding("open", "drift", LOSS, severity, 900.0, 4.0, 900, "log", 0, first_step=400.0))
    [incident] = incidents(book.episodes())
    assert incident.title == f"training loss: {word} at step 400"
