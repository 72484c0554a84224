"""Pins, acknowledgements and the look come back in the same directory, and never from a file that is not ours."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.tui import sample
from tests.tui.driver import StillClock, source_of
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.look import Look
from trainmon.tui.row import RunId
from trainmon.tui.screens.fleet import FleetScreen
from trainmon.tui.seen import _states
from trainmon.tui.state import SCHEMA, State, StateFile

NAN = "loss.nonfinite:nonfinite:loss.train:0:3601"


def app_with(file: StateFile) -> TrainmonApp:
    source = sample.SampleSource(sample.fleet())
    return TrainmonApp(source, clock=StillClock(), look=Look(UNICODE), state=file)


async def test_what_was_chosen_comes_back(tmp_path: Path) -> None:
    app = app_with(StateFile(tmp_path, tmp_path / "state"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("j", "space", "enter", "tab", "a", "m", "x", "T", "escape", "s", "slash", *"lr-hot", "enter")
        await pilot.pause()
    again = app_with(StateFile(tmp_path, tmp_path / "state"))
    async with again.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        again.poll()
        source_of(again).snapshot = sample.fleet()
        again.poll()
        screen = again.screen
        assert isinstance(screen, FleetScreen)
        assert [pin.name for pin in again.pins] == ["olmo-7b-lr-hot"]
        assert (screen.order, screen.filter_text) == ("name", "lr-hot")
        assert again.axis == "tokens"
        assert again.view.smooth
        assert not again.look.dark
        assert ("acknowledge", "olmo-7b-lr-hot", NAN) in source_of(again).asked


async def test_another_directory_knows_nothing_of_it(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    StateFile(one, tmp_path).write(State(pins=(("a", "b"),)))
    assert StateFile(one, tmp_path).read()[0].pins == (("a", "b"),)
    assert StateFile(other, tmp_path).read() == (State(directory=str(other)), "")


def test_the_file_is_private_and_replaced_in_one_piece(tmp_path: Path) -> None:
    file = StateFile(tmp_path, tmp_path / "deep" / "state")
    for order in ("name", "loss"):
        assert file.write(State(order=order)) == ""
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
        assert list(file.path.parent.iterdir()) == [file.path]
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("content", "touched"),
    [
        (b"", True),
        (b"\xff\xfe\x00", True),
        (b'{"schema": "trainmon.state/1", "directory": "D", "pins": 7}', True),
        (b'{"schema": "trainmon.state/99", "directory": "D", "pins": {}}', False),
        (b'{"schema": "trainmon.state/1", "directory": "/elsewhere"}', False),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, content: bytes, touched: bool) -> None:
    file = StateFile(tmp_path, tmp_path)
    content = content.replace(b'"D"', f'"{file.directory}"'.encode())
    file.path.write_bytes(content)
    state, problem = file.read()
    assert state == State(directory=file.directory)
    assert str(file.path) in problem
    assert "\n" not in problem
    file.write(State(order="name"))
    assert (file.path.read_bytes() != content) == touched


@given(
    flips=st.lists(st.tuples(st.floats(0, 0.9999), st.integers(1, 255)), max_size=3),
    cut=st.just(1.0) | st.floats(0, 0.9999),
)
def test_a_flipped_byte_is_said_and_never_believed(
    tmp_path_factory: pytest.TempPathFactory, flips: list[tuple[float, int]], cut: float
) -> None:
    folder = tmp_path_factory.mktemp("state")
    file = StateFile(folder, folder)
    run = next(iter(sample.fleet().runs))
    seen = tuple((run.name, run.target, each.id) for each in run.episodes) or (("run", "target", "e1"),)
    file.write(State(acknowledged=seen, pins=(("a", "b"),)))
    whole, right = file.path.read_bytes(), file.read()[0]
    content = bytearray(whole)
    for place, flip in flips:
        content[int(place * len(content))] ^= flip
    damaged = bytes(content[: int(cut * len(content))])
    file.path.write_bytes(damaged)
    state, problem = StateFile(folder, folder).read()
    if damaged == whole:
        assert (state, problem) == (right, "")
    else:
        assert state == State(directory=file.directory)
        assert str(file.path) in problem
        assert list(_states(folder)) == []


def test_a_link_or_a_pipe_in_its_place_is_left_alone(tmp_path: Path) -> None:
    for make in (lambda path: path.symlink_to(tmp_path / "victim"), os.mkfifo):
        file = StateFile(tmp_path, tmp_path / "state")
        file.path.parent.mkdir(exist_ok=True)
        make(file.path)
        state, problem = file.read()
        assert state.schema == SCHEMA
        assert "ignored" in problem
        assert file.write(State()) == ""
        assert not file.path.is_file()
        file.path.unlink()


def test_of_more_acknowledged_episodes_than_are_kept_the_newest_stay(tmp_path: Path) -> None:
    file = StateFile(tmp_path, tmp_path / "state")
    file.write(State(acknowledged=tuple(("run", "target", str(number)) for number in range(6000))))
    kept = [episode for _, _, episode in file.read()[0].acknowledged]
    assert 1000 < len(kept) < 6000
    assert kept == [str(number) for number in range(6000 - len(kept), 6000)]
    file.write(State(snoozed=tuple(("run", "target", str(number), 9e9) for number in range(6000))))
    asleep = [one[2] for one in file.read()[0].snoozed]
    assert asleep == [str(number) for number in range(6000 - len(asleep), 6000)]
    assert len(asleep) == len(kept)


def test_two_that_watch_one_directory_keep_what_both_were_told(tmp_path: Path) -> None:
    one, other = StateFile(tmp_path, tmp_path / "state"), StateFile(tmp_path, tmp_path / "state")
    StateFile(tmp_path, tmp_path / "state").write(State(pins=(("old", ""), ("kept", "")), order="name"))
    first, second = one.read()[0], other.read()[0]
    first = replace(first, pins=(("kept", ""), ("one", "")), acknowledged=(("a", "", "nan"),))
    second = replace(second, pins=(*second.pins, ("other", "")), snoozed=(("b", "", "spike", 9.0),), order="age")
    assert (one.write(first), other.write(second)) == ("", "")
    first = replace(first, acknowledged=(*first.acknowledged, ("a", "", "oom")))
    assert one.write(first) == ""
    kept = StateFile(tmp_path, tmp_path / "state").read()[0]
    assert set(kept.pins) == {("kept", ""), ("one", ""), ("other", "")}  # and "old", which the first took away, is gone
    assert kept.acknowledged == (("a", "", "nan"), ("a", "", "oom"))
    assert kept.snoozed == (("b", "", "spike", 9.0),)
    assert kept.order == "age"  # only the second changed it
    assert other.write(replace(second, pins=second.pins[:2])) == ""
    assert set(StateFile(tmp_path, tmp_path / "state").read()[0].pins) == {("kept", ""), ("one", "")}


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    problem = StateFile(tmp_path, tmp_path / "file" / "state").write(State())
    assert "will not be remembered" in problem


def test_remembered_pins_of_runs_that_are_gone_do_no_harm(tmp_path: Path) -> None:
    file = StateFile(tmp_path, tmp_path)
    file.write(State(pins=(("gone", "nowhere"),), order="no such order", axis="no such axis"))
    app = app_with(file)
    screen = app._recalled(app.memory.state)
    assert screen.order == "trouble"
    assert app.axis == "step"
    assert app.pins == [RunId("gone", "nowhere")]


async def test_the_look_of_the_charts_and_a_snooze_come_back(tmp_path: Path) -> None:
    app = app_with(StateFile(tmp_path, tmp_path / "state"))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        await pilot.press("exclamation_mark", "j", "enter", "tab", "z", "y", "o", "d", "j", "enter", "escape", "escape")
        await pilot.pause()
        snoozed = [one for one in source_of(app).asked if one[0] == "snooze"]
        added = list(app.added)
        assert len(snoozed) == len(added) == 1
    again = app_with(StateFile(tmp_path, tmp_path / "state"))
    async with again.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        source_of(again).snapshot = sample.fleet()
        again.poll()
        screen = again.screen
        assert isinstance(screen, FleetScreen)
        assert screen.only_troubled
        assert (again.view.log_y, again.view.clip) == (True, True)
        assert again.added == added
        assert [one[:3] for one in source_of(again).asked] == [snoozed[0][:3]]
        again.clock.sleep(3601.0)
        assert again._state().snoozed == (), "a snooze that is over is forgotten"


async def test_a_theme_that_was_asked_for_stands_above_the_one_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    StateFile(tmp_path, tmp_path / "state").write(State(dark=False))
    for wish, dark in ((None, False), ("dark", True)):
        if wish is not None:
            monkeypatch.setenv("TRAINMON_THEME", wish)
        app = app_with(StateFile(tmp_path, tmp_path / "state"))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert app.look.dark is dark
