"""What is worth telling, and when: each incident once, and again only when that helps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.sinks.made import NOW, episode, fleet_of, run_of
from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.sinks.bus import AlertBus
from trainmon.monitor.sinks.event import Rank
from trainmon.monitor.snapshot import RunSnapshot, State


class Watch:
    """A bus that has read the (empty) history of the run, and a clock."""

    def __init__(self, *history: Episode, level: Rank = Rank.PAGE, standing: bool = False) -> None:
        self.bus = AlertBus(level=level, include_standing=standing)
        self.now = NOW
        self.first = self.take(*history)

    def take(self, *episodes: Episode, after: float = 1.0, **changes: object) -> list[tuple[str, str]]:
        return self.take_runs(run_of(*episodes, **changes), after=after)  # type: ignore[arg-type]

    def take_runs(self, *runs: RunSnapshot, after: float = 1.0) -> list[tuple[str, str]]:
        self.now += after
        self.events = self.bus.take(fleet_of(*runs), self.now)
        return [(event.kind, event.rank.name if not event.is_over else event.peak.name) for event in self.events]


WARN = episode(severity=Severity.WARN, check="loss.spike", kind="spike")


def test_an_incident_is_told_once() -> None:
    watch = Watch()
    assert watch.take(episode()) == [("opened", "PAGE")]
    assert watch.take(episode()) == []
    assert watch.take(replace(episode(), last_step=300.0)) == [], "it only grew"


def test_the_same_snapshot_is_not_looked_at_again_within_a_second() -> None:
    watch = Watch()
    run = run_of(episode())
    assert watch.take_runs(run) == [("opened", "PAGE")]
    assert watch.take_runs(run, after=0.1) == []
    assert watch.take_runs(run, after=3600.0) == [("again", "PAGE")]


def test_history_is_silent_until_it_gets_worse() -> None:
    watch = Watch(WARN, level=Rank.WARN)
    assert watch.first == []
    assert watch.take(WARN) == []
    assert watch.take(WARN, after=7200.0) == []
    assert watch.take(replace(WARN, severity=Severity.FAIL)) == [("opened", "PAGE")]


def test_history_that_recovers_was_never_told_and_what_comes_back_is_news() -> None:
    watch = Watch(episode())
    assert watch.take(episode(recovered=True)) == []
    assert watch.take(episode()) == [("opened", "PAGE")]


def test_what_stands_is_told_on_request() -> None:
    assert Watch(episode(), standing=True).first == [("opened", "PAGE")]


def test_a_history_that_is_still_being_read_says_nothing() -> None:
    watch = Watch()
    part = run_of(episode(), name="b", progress=0.4, age_s=9000.0)
    assert watch.take_runs(part) == []
    assert watch.take_runs(replace(part, progress=1.0)) == []
    assert watch.take_runs(run_of(episode(), episode("e2", step=500.0), name="b", age_s=9000.0)) == [("opened", "PAGE")]


def test_a_run_that_appears_later_and_fails_at_once_is_told() -> None:
    watch = Watch()
    assert watch.take_runs(run_of(), run_of(episode(), name="new", age_s=2.0)) == [("opened", "PAGE")]
    assert watch.take_runs(run_of(), run_of(episode(), name="copied", age_s=90_000.0)) == []


def test_louder() -> None:
    watch = Watch(level=Rank.WARN)
    assert watch.take(WARN) == [("opened", "WARN")]
    assert watch.take(replace(WARN, severity=Severity.FAIL)) == [("louder", "PAGE")]
    assert watch.take(WARN) == [], "quieter is no news"
    assert watch.take(replace(WARN, severity=Severity.FAIL)) == []


def test_what_grows_into_another_incident_is_still_the_same() -> None:
    """A fault found later whose first step lies before gives the incident its name."""
    watch = Watch()
    assert watch.take(episode("e1", incident="i1")) == [("opened", "PAGE")]
    earlier = episode("e0", "grad.norm", Severity.WARN, incident="i0", step=99.0)
    assert watch.take(earlier, episode("e1", incident="i0")) == []
    assert watch.take(earlier, episode("e1", incident="i0", recovered=True)) == []
    assert watch.take(replace(earlier, recovered=True), episode("e1", incident="i0", recovered=True)) == [
        ("recovered", "PAGE")
    ]


def test_an_open_one_is_sent_again_every_hour() -> None:
    watch = Watch()
    watch.take(episode())
    assert watch.take(episode(), after=3598.0) == []
    assert watch.take(episode(), after=3.0) == [("again", "PAGE")]
    assert watch.take(episode(), after=3000.0) == []
    assert watch.take(episode(), after=700.0) == [("again", "PAGE")]


@pytest.mark.parametrize("state", [State.FINISHED, State.CANCELLED, State.REQUEUED])
def test_a_run_that_was_ended_is_not_told_of_every_hour(state: State) -> None:
    watch = Watch()
    watch.take(episode())
    assert watch.take(episode(), after=4000.0, state=state) == []
    assert watch.take(episode(), after=1.0, state=State.CRASHED) == [("again", "PAGE")]


def test_acknowledged_is_silent_and_its_end_is_told() -> None:
    watch = Watch()
    watch.take(episode())
    seen = episode(acknowledged=True)
    assert watch.take(seen, after=9000.0) == []
    assert watch.take(replace(seen, recovered=True)) == [("recovered", "PAGE")]


def test_a_snooze_is_silent_and_its_end_reminds() -> None:
    watch = Watch()
    watch.take(episode())
    asleep = episode(snoozed_until=watch.now + 5000.0)
    assert watch.take(asleep) == []
    assert watch.take(asleep, after=3700.0) == []
    assert watch.take(asleep, after=1400.0) == [("again", "PAGE")], "its time is over, whatever the snapshot says"


def test_another_fault_of_an_acknowledged_incident_is_told() -> None:
    watch = Watch()
    watch.take(episode("e1", incident="i"))
    both = (episode("e1", incident="i", acknowledged=True), episode("e2", "grad.norm", incident="i"))
    assert watch.take(*both) == [], "the same incident at the same rank was told"
    assert watch.take(*both, after=4000.0) == [("again", "PAGE")]
    assert watch.events[0].lead.id == "e2"


def test_cool_down_holds_back_what_comes_back_at_once() -> None:
    watch = Watch()
    assert watch.take(episode("e1")) == [("opened", "PAGE")]
    over = episode("e1", recovered=True)
    assert watch.take(over) == [("recovered", "PAGE")]
    again = episode("e2", step=150.0)
    assert watch.take(over, again) == []
    assert watch.take(over, replace(again, recovered=True)) == [], "gone before anybody had to know"
    third = episode("e3", step=180.0)
    assert watch.take(over, third, after=10.0) == []
    assert watch.take(over, third, after=700.0) == [("opened", "PAGE")], "still there when the cool-down is over"


def test_cool_down_does_not_hold_back_what_is_louder_or_elsewhere() -> None:
    watch = Watch(level=Rank.WARN)
    watch.take(WARN)
    watch.take(replace(WARN, recovered=True))
    worse = replace(WARN, id="e2", incident="i2", severity=Severity.FAIL)
    assert watch.take(worse) == [("opened", "PAGE")]
    assert watch.take(worse, episode("e3", "grad.norm", check="grad.norm", step=900.0)) == [("opened", "PAGE")]


def test_withdrawn() -> None:
    watch = Watch()
    watch.take(episode("e1", incident="i"), episode("e2", "grad.norm", Severity.WARN, incident="i"))
    assert watch.take(episode("e2", "grad.norm", Severity.WARN, incident="i")) == []
    assert watch.take(progress=0.5) == [], "while a file is read anew nothing is taken back"
    assert watch.take() == [("withdrawn", "PAGE")]
    assert watch.take() == []


@pytest.mark.parametrize(
    ("state", "kind"), [(State.RUNNING, "recovered"), (State.FINISHED, "recovered"), (State.UNKNOWN, "withdrawn")]
)
def test_a_job_that_hung_and_goes_on_has_recovered(state: State, kind: str) -> None:
    watch = Watch()
    hung = episode("h", "job.state", check="job.state", kind="hung", what="no new data for 10 min")
    assert watch.take(hung, state=State.HUNG) == [("opened", "PAGE")]
    assert watch.take(state=state) == [(kind, "PAGE")]
    assert watch.events[0].state == state.value


def test_levels() -> None:
    quiet = episode(signal="tensor.rms", severity=Severity.FAIL)  # a FAIL that pages nobody
    info = episode(severity=Severity.INFO)
    for level, expected in ((Rank.PAGE, []), (Rank.FAIL, [("opened", "FAIL")]), (Rank.WARN, [("opened", "FAIL")])):
        assert Watch(level=level).take(quiet) == expected
        assert Watch(level=level).take(info) == []
    assert Watch(level=Rank.FAIL).take(WARN) == []
    assert Watch(level=Rank.PAGE).take(episode(check="job.state", signal="job.state")) == [("opened", "PAGE")]


def test_a_run_that_is_gone_from_the_fleet_is_not_recovered() -> None:
    watch = Watch()
    watch.take(episode())
    assert watch.take_runs() == []
    assert watch.take(episode()) == []


def test_a_clock_that_is_set_back_silences_nothing() -> None:
    watch = Watch()
    watch.take(episode())
    assert watch.take(episode(), after=-86_400.0) == [("again", "PAGE")]
    assert watch.take(episode()) == []


EPISODES = st.builds(
    lambda name, bad, recovered, seen, where: episode(
        f"e{name}",
        severity=Severity(bad),
        recovered=recovered,
        acknowledged=seen,
        incident=f"i{where}",
        step=float(name),
    ),
    st.integers(1, 6),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.lists(EPISODES, max_size=5, unique_by=lambda one: one.id), st.floats(1, 5000)), max_size=12)
)
def test_every_message_follows_from_the_one_before(story: list[tuple[list[Episode], float]]) -> None:
    """However episodes come, go, merge and part: an end follows a beginning, nothing is told below the level, and
    never more than one message an incident at a time."""
    watch = Watch(level=Rank.WARN)
    told = 0
    for episodes, after in story:
        watch.take(*episodes, after=after)
        for event in watch.events:
            told += {"opened": 1, "recovered": -1, "withdrawn": -1}.get(event.kind, 0)
            assert told >= 0
            assert event.peak >= Rank.WARN
            assert event.is_over or event.rank >= Rank.WARN
            assert event.is_over or not event.lead.recovered
        assert len({event.incident.id for event in watch.events if not event.is_over}) == len(
            [event for event in watch.events if not event.is_over]
        )
