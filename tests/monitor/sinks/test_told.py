"""What was told is known after a restart: nobody hears the same twice within the hour, and its end is told."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.sinks import made
from tests.monitor.sinks.made import NOW, Said, episode, fleet_of, run_of
from trainmon.monitor.finding import Episode, Severity
from trainmon.monitor.sinks.alerting import Alerting
from trainmon.monitor.sinks.base import Surroundings
from trainmon.monitor.sinks.settings import AlertSettings
from trainmon.monitor.sinks.told import Marked, ToldBook, told_file
from trainmon.tails.clock import SystemClock


class At:
    """A clock that says what it is set to; waiting is real."""

    def __init__(self, now: float) -> None:
        self.now = now

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        del seconds


class Watched:
    """Programs one after the other in one directory, with one alert log."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **wanted: object) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        self.folder = folder
        self.log = folder / "alerts.jsonl"
        self.wanted = AlertSettings(log=self.log, **wanted)  # type: ignore[arg-type]
        self.said = Said()
        self.session = made.Marked()

    def program(self, now: float, *fleets: tuple[Episode, ...]) -> list[str]:
        before = len(self.events())
        clock = At(now)
        alerting = Alerting(
            self.wanted,
            Surroundings(clock, self.said),
            self.session,
            directory=self.folder,
        )
        for place, episodes in enumerate(fleets):
            clock.now = now + 2.0 * place
            alerting.take(fleet_of(run_of(*episodes)))
        alerting.close(10.0)
        return self.events()[before:]

    def events(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["event"] for line in lines]


def test_the_same_is_not_sent_again_within_the_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(tmp_path, monkeypatch, standing=True)
    assert watched.program(NOW, (), (episode(),)) == ["opened"]
    assert watched.program(NOW + 600, (episode(),), (episode(),)) == []
    assert watched.program(NOW + 3700, (episode(),)) == ["again"]
    assert watched.program(NOW + 4000, (episode(recovered=True),)) == ["recovered"]
    assert watched.program(NOW + 4100, (episode(recovered=True),)) == []


def test_without_standing_ones_the_end_of_what_was_told_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, monkeypatch)
    assert watched.program(NOW, (), (episode(),)) == ["opened"]
    assert watched.program(NOW + 60, (episode(), episode("e2", severity=Severity.WARN))) == []
    assert watched.program(NOW + 120, (episode(recovered=True),)) == ["recovered"]


def test_what_was_acknowledged_is_not_sent_again_by_the_next_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, monkeypatch, standing=True)
    seen = episode(acknowledged=True)
    assert watched.program(NOW, (), (episode(),), (seen,)) == ["opened"]
    assert watched.session.marks == []
    assert watched.program(NOW + 4000, (episode(),), (seen,)) == []
    assert watched.session.marks == [("acknowledge", "a", "e1")]
    other = episode("e2", "grad.norm")
    assert watched.program(NOW + 9000, (episode(), other)) == ["opened"], "another fault is told"
    assert watched.program(NOW + 9100, (episode(recovered=True), other)) == ["recovered"]


def test_a_snooze_goes_on_over_a_restart_and_comes_back_when_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(tmp_path, monkeypatch, standing=True)
    asleep = episode(snoozed_until=NOW + 5000)
    assert watched.program(NOW, (), (episode(),), (asleep,)) == ["opened"]
    assert watched.program(NOW + 4000, (episode(),), (asleep,)) == []
    assert watched.session.marks == [("snooze", "a", "e1", 1000.0)]
    assert watched.program(NOW + 5001, (episode(),)) == ["again"]


def test_a_fault_of_the_same_name_that_began_later_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(tmp_path, monkeypatch, standing=True)
    first = replace(episode(), first_time=NOW - 50)
    assert watched.program(NOW, (), (first,), (replace(first, acknowledged=True),)) == ["opened"]
    assert watched.program(NOW + 4000, (first,)) == []
    assert watched.program(NOW + 8000, (replace(first, first_time=NOW + 7900),)) == ["again"]


def test_other_sinks_heard_nothing_of_it(tmp_path: Path) -> None:
    one, other = AlertSettings(bell=True), AlertSettings(on_alert="page-me")
    assert told_file(tmp_path, one, tmp_path) != told_file(tmp_path, other, tmp_path)
    assert told_file(tmp_path, one, tmp_path) != told_file(tmp_path / "sub", one, tmp_path)
    assert "page-me" not in str(told_file(tmp_path, other, tmp_path))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"schema": "trainmon.told/9"}', b'{"told": [{"run": 1}]}'])
def test_a_damaged_file_is_said_and_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    watched = Watched(tmp_path, monkeypatch, standing=True)
    path = told_file(tmp_path, watched.wanted)
    path.parent.mkdir(parents=True)
    path.write_bytes(damage)
    assert watched.program(NOW, (episode(),)) == ["opened"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["schema"] == "trainmon.told/1"
    (said,) = watched.said.lines
    assert str(path) in said
    assert "told twice" in said


@given(
    flips=st.lists(st.tuples(st.floats(0, 0.9999), st.integers(1, 255)), max_size=3),
    cut=st.just(1.0) | st.floats(0, 0.9999),
)
def test_a_flipped_byte_is_never_believed(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[float, int]], cut: float
) -> None:
    path, said, clock = tmp_path_factory.mktemp("told") / "one.json", list[str](), SystemClock()
    marked = Marked("run", "target", "e1", 5.0, acknowledged=True)
    book = ToldBook(path, said.append, clock)
    book.mark([marked])
    book.close(30.0)
    whole = path.read_bytes()
    content = bytearray(whole)
    for place, flip in flips:
        content[int(place * len(content))] ^= flip
    damaged = bytes(content[: int(cut * len(content))])
    path.write_bytes(damaged)
    again = ToldBook(path, said.append, clock)
    again.close(30.0)
    assert again.marked() == ({marked.name: marked} if damaged == whole else {})
    assert len(said) == (damaged != whole)
