"""Alerts from within the screens: whoever is to be told is told, and the team's marks go out and come in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.monitor.sinks.made import Marked, Said, episode, run_of
from tests.tui import sample
from tests.tui.driver import StillClock, source_of, text_of
from trainmon.monitor.sinks.alerting import Alerting
from trainmon.monitor.sinks.base import Surroundings
from trainmon.monitor.sinks.settings import AlertSettings
from trainmon.monitor.sinks.shared import SharedState
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look

PATIENCE = 200  # times 50 ms


def app_with(wanted: AlertSettings, fleet: FleetSnapshot) -> TrainmonApp:
    source = sample.SampleSource(fleet)
    app = TrainmonApp(source, clock=StillClock(), look=Look(UNICODE))
    around = Surroundings(app.clock, app.trouble.put, app.send_to_terminal, {})
    app.alerting = Alerting(wanted, around, source)
    return app


async def test_a_new_incident_rings_and_shows_and_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "alerts.jsonl"
    app = app_with(AlertSettings(bell=True, desktop="auto", log=log), FleetSnapshot((run_of(),)))
    written: list[str] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app._tick()
        assert app._driver is not None
        app._driver.write = written.append  # type: ignore[assignment]
        source_of(app).snapshot = FleetSnapshot((run_of(episode()),))
        app.poll()
        app._tick()
        sent = [one for one in written if one == "\a" or one.startswith("\x1b]9;")]
        assert sent == ["\a", "\x1b]9;trainmon: FAIL a: training loss: non-finite values at step 100\x1b\\"]
        assert app.alerting is not None
        app.alerting.close(10.0)
    assert json.loads(log.read_text())["event"] == "opened"


async def test_it_is_told_again_though_no_snapshot_comes(tmp_path: Path) -> None:
    log = tmp_path / "alerts.jsonl"
    app = app_with(AlertSettings(log=log), FleetSnapshot((run_of(),)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app._tick()
        source_of(app).snapshot = FleetSnapshot((run_of(episode()),))
        app.poll()
        app.clock.sleep(3601.0)
        app._tick()
        assert app.alerting is not None
        app.alerting.close(10.0)
    assert [json.loads(line)["event"] for line in log.read_text().splitlines()] == ["opened", "again"]


async def test_trouble_with_a_sink_is_said_on_the_screen(tmp_path: Path) -> None:
    app = app_with(AlertSettings(log=tmp_path / "none" / "log"), FleetSnapshot((run_of(),)))
    async with app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        app._tick()
        source_of(app).snapshot = FleetSnapshot((run_of(episode()),))
        for _ in range(PATIENCE):
            app.poll()
            await pilot.pause(0.05)
            if app._notifications:
                break
        assert ["alerts wait to be written" in one.message for one in app._notifications] == [True]


async def test_a_team_shares_what_it_has_seen(tmp_path: Path) -> None:
    path = str(tmp_path / "train.log")
    team = tmp_path / "team"
    one, two = episode("e1", path=path), episode("e2", "grad.norm", path=path, incident="i2", step=500.0)
    fleet = FleetSnapshot((run_of(one, two),))
    marked, said = Marked(), Said()
    colleague = SharedState(team, marked, said, StillClock(), writer="bob", look_s=0.05)
    colleague.look(fleet)
    app = app_with(AlertSettings(shared_state=team), fleet)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("A", "a")
        assert marked.wait() == [("acknowledge", "a", source_of(app).asked[0][2])]
        await pilot.press("z")
        assert [mark[0] for mark in marked.wait(2)] == ["acknowledge", "snooze"]
        other = two if marked.marks[0][2] == "e1" else one
        colleague.acknowledged(replace(fleet.runs[0], name="elsewhere"), other)
        for _ in range(PATIENCE):
            app._tick()
            await pilot.pause(0.05)
            if any("acknowledged a" in note.message for note in app._notifications):
                break
        else:
            raise AssertionError(text_of(app))
        assert ("acknowledge", "a", other.id) in source_of(app).asked
        assert app.alerting is not None
        app.alerting.close(10.0)
    colleague.close(5.0)
    assert said.lines == []
