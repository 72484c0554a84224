"""What is written to the terminal when an incident pages."""

from __future__ import annotations

from dataclasses import replace

from tests.tui import sample
from trainmon.monitor.finding import Incident, Severity
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tui.sinks import Sinks


def fleet_of(run: RunSnapshot, *incidents: Incident) -> FleetSnapshot:
    return FleetSnapshot((replace(run, incidents=incidents),))


def incident(number: int, title: str, pages: bool = True, recovered: bool = False) -> Incident:
    return Incident(f"i{number}", title, Severity.FAIL, 1.0, 2.0, recovered, pages, (f"e{number}",))


RUN = sample.fleet().runs[0]


def test_a_new_page_rings_once() -> None:
    sinks = Sinks(bell=True, desktop=True)
    old = incident(1, "old story")
    assert sinks.news(fleet_of(RUN, old)) == "", "history pages nobody"
    new = fleet_of(RUN, old, incident(2, "loss is NaN"))
    assert sinks.news(new) == f"\a\x1b]9;trainmon: {RUN.name}: loss is NaN\x1b\\"
    assert sinks.news(new) == ""


def test_what_does_not_page_is_silent() -> None:
    sinks = Sinks(bell=True)
    sinks.news(fleet_of(RUN))
    assert sinks.news(fleet_of(RUN, incident(1, "a", pages=False), incident(2, "b", recovered=True))) == ""


def test_off_unless_asked_for() -> None:
    sinks = Sinks()
    sinks.news(fleet_of(RUN))
    assert sinks.news(fleet_of(RUN, incident(1, "a"))) == ""


def test_a_hostile_title_stays_inside_the_sequence() -> None:
    sinks = Sinks(desktop=True)
    sinks.news(fleet_of(RUN))
    written = sinks.news(fleet_of(RUN, incident(1, "x\x1b\\\x07\x1b]52;c;AAAA\x07")))
    assert written.count("\x1b") == 2
    assert "\a" not in written


def test_history_that_is_still_read_pages_nobody() -> None:
    sinks = Sinks(bell=True)
    loading = replace(RUN, progress=0.5)
    assert sinks.news(fleet_of(loading)) == ""
    assert sinks.news(fleet_of(loading, incident(1, "a"))) == ""
    assert sinks.news(fleet_of(RUN, incident(1, "a"), incident(2, "b"))) == ""
    assert sinks.news(fleet_of(RUN, incident(3, "c"))) == "\a"
