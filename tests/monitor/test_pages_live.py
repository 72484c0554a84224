"""What a person is woken for, hour by hour: a real session on a log that grows, with a clock that can be set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from trainmon.monitor.finding import Severity
from trainmon.monitor.session import Monitor
from trainmon.monitor.sinks.alerting import Alerting
from trainmon.monitor.sinks.base import Surroundings
from trainmon.monitor.sinks.settings import AlertSettings
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.clock import SystemClock


class Ahead(SystemClock):
    """The system's, with a wall time that can be put forward."""

    ahead_s = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead_s


class Program:
    """`watch` without its output: session, alerts, alert log."""

    def __init__(self, folder: Path, clock: Ahead) -> None:
        self.log = folder / "alerts.jsonl"
        self.clock = clock
        self.session = Monitor([str(folder / "train.jsonl")], cwd=folder, clock=clock)
        wanted = AlertSettings(log=self.log, standing=True)
        self.alerting = Alerting(wanted, Surroundings(clock, print), self.session, directory=folder)
        self.session.start()

    def events(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["event"] for line in lines]

    def until(self, holds: Callable[[FleetSnapshot], bool], seconds: float = 30.0) -> RunSnapshot:
        end = monotonic() + seconds
        while True:
            fleet = self.session.latest()
            self.alerting.take(fleet)
            if fleet.runs and not fleet.reading and holds(fleet):
                return fleet.runs[0]
            assert monotonic() < end, fleet
            sleep(0.05)

    def hears(self, count: int) -> list[str]:
        """The events, once there are `count`; and those that come within the next second."""
        self.until(lambda _: len(self.events()) >= count)
        end = monotonic() + 1.2
        self.until(lambda _: monotonic() > end)
        return self.events()

    def close(self) -> None:
        self.alerting.close(10.0)
        self.session.stop()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Program]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    clock = Ahead()
    made: list[Program] = []

    def begin() -> Program:
        if made:
            made[-1].close()
        made.append(Program(tmp_path, clock))
        return made[-1]

    yield begin
    made[-1].close()


def write(folder: Path, first: int, last: int, *, bad: bool = False, share: float = 0.3) -> None:
    with (folder / "train.jsonl").open("a", encoding="utf-8") as file:
        for step in range(first, last + 1):
            wobble = 0.01 * ((7 * step) % 5)
            loss = "NaN" if bad else f"{2.0 + wobble:.4f}"
            norm = "NaN" if bad else f"{0.5 + wobble:.4f}"
            file.write(
                f'{{"step": {step}, "loss": {loss}, "grad_norm": {norm}, "lr": 0.001, '
                f'"loss/code": {loss}, "data_share/code": {share}}}\n'
            )


def bad_ones(run: RunSnapshot) -> list[str]:
    return [one.id for one in run.episodes if one.severity is Severity.FAIL]


def test_one_story_is_one_page_an_hour_until_somebody_has_seen_it(
    program: Callable[[], Program], tmp_path: Path
) -> None:
    write(tmp_path, 1, 300)
    watch = program()
    watch.until(lambda fleet: fleet.runs[0].last_step == 300)
    write(tmp_path, 301, 320, bad=True, share=0.9)
    run = watch.until(lambda fleet: len(bad_ones(fleet.runs[0])) >= 2)
    assert watch.hears(1) == ["opened"], "loss and gradient norm and data share are one story and one page"
    assert sum(incident.pages for incident in run.incidents) == 1

    watch.clock.ahead_s = 3500.0
    assert watch.hears(1) == ["opened"]
    watch.clock.ahead_s = 3700.0
    assert watch.hears(2) == ["opened", "again"]
    watch.clock.ahead_s = 3700.0 + 3000.0
    assert watch.hears(2) == ["opened", "again"]

    watch = program()  # a restart says nothing anew
    watch.until(lambda fleet: len(bad_ones(fleet.runs[0])) >= 2)
    assert watch.hears(2) == ["opened", "again"]

    for name in bad_ones(watch.session.latest().runs[0]):
        watch.session.snooze("train.jsonl", name, 3600.0)
    watch.until(lambda fleet: all(one.snoozed_until for one in fleet.runs[0].episodes if one.id in bad_ones(run)))
    watch.clock.ahead_s += 3000.0
    assert watch.hears(2) == ["opened", "again"], "asleep, though an hour has passed since the last page"
    watch.clock.ahead_s += 700.0
    assert watch.hears(3) == ["opened", "again", "again"], "its hour is over"

    for name in bad_ones(watch.session.latest().runs[0]):
        watch.session.acknowledge("train.jsonl", name)
    watch.until(lambda fleet: all(one.acknowledged for one in fleet.runs[0].episodes if one.id in bad_ones(run)))
    watch.clock.ahead_s += 8000.0
    assert watch.hears(3) == ["opened", "again", "again"]

    watch = program()  # nor is it forgotten that it was seen
    watch.until(lambda fleet: all(one.acknowledged for one in fleet.runs[0].episodes if one.id in bad_ones(run)))
    watch.clock.ahead_s += 8000.0
    assert watch.hears(3) == ["opened", "again", "again"]

    write(tmp_path, 321, 900)
    watch.until(lambda fleet: fleet.runs[0].last_step == 900)
    assert watch.hears(4) == ["opened", "again", "again", "recovered"]
    write(tmp_path, 901, 920, bad=True)
    assert watch.hears(5)[4:] == ["opened"], "a new fault pages anew"
