"""Keys of the user's own: what was asked for works everywhere, what cannot be is said and left as it was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui import sample
from tests.tui.driver import StillClock, text_of
from trainmon.tui import keys
from trainmon.tui.app import TrainmonApp
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.keymap import KeyMap, key_map_of, normal
from trainmon.tui.look import Look
from trainmon.tui.screens.help import HelpScreen, help_lines
from trainmon.tui.screens.log import LogScreen
from trainmon.tui.screens.triage import TriageScreen


def app_with(table: dict[str, object]) -> TrainmonApp:
    source = sample.SampleSource(sample.fleet())
    return TrainmonApp(source, clock=StillClock(), look=Look(UNICODE), key_map=key_map_of(table))


async def test_other_keys_do_it_and_the_old_ones_do_not() -> None:
    app = app_with({"triage": ["ctrl+t", "f2"], "log": "t", "down": ["n"], "step.next": "J", "help": "h"})
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        assert app.key_map.problems == ()
        bar = text_of(app).splitlines()[-1]
        assert "ctrl+t f2 triage" in bar
        assert "t log" in bar
        assert "h help" in bar
        await pilot.press("n", "l")
        assert not isinstance(app.screen, LogScreen)
        await pilot.press("t")
        await pilot.pause()
        assert isinstance(app.screen, LogScreen)
        await pilot.press("escape", "f2")
        await pilot.pause()
        assert isinstance(app.screen, TriageScreen)
        assert app.screen.run_id.name == "olmo-7b-lr-hot", "n moved the cursor"
        assert "J goes on" in text_of(app)
        await pilot.press("h")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        shown = text_of(app)
        assert "ctrl+t f2" in shown
        assert "  J " in shown


async def test_an_action_without_a_key_is_in_no_help_and_in_the_palette() -> None:
    app = app_with({"theme": [], "chart.2": []})
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("T", "question_mark")
        await pilot.pause()
        assert app.look.dark, "T does nothing"
        assert "dark or light ground" not in text_of(app)
        await pilot.press("escape", "colon", *"dark")
        for _ in range(20):
            await pilot.pause(0.05)
            if "dark or light ground" in text_of(app):
                break
        else:
            raise AssertionError(text_of(app))


async def test_what_cannot_be_is_said_on_the_screen() -> None:
    app = app_with({"nap": "z", "log": "t"})
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        said = [one.message for one in app._notifications]
        assert said == list(app.key_map.problems)
        assert len(said) == 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"nap": "n"}, "no such action"),
        ({"log": "t"}, "t is the key of triage"),
        ({"log": ["L"]}, "L is the key of layers"),
        ({"log": "x", "axis": "x"}, "x is the key of axis"),
        ({"quit": []}, "needs a key"),
        ({"log": "hyperspace"}, "no key"),
        ({"log": ""}, "no key"),
        ({"log": "\x07"}, "no key"),
        ({"log": 7}, "must be a key"),
        ({"log": ["a", 7]}, "must be a key"),
        ({"log": "ctrl+p"}, "always means palette"),
        ({"log": "ctrl+c"}, "always means quit"),
        ({"log": "ctrl+i"}, "Tab is the key of pane.next"),
    ],
)
def test_conflicts_and_unknown_ones_are_left_out(table: dict[str, object], words: str) -> None:
    changed = key_map_of(table)
    assert words in changed.problems[0]
    assert len(changed.problems) == 1
    assert "\n" not in changed.problems[0]
    assert next(key for key in changed.keys if key.id == "log").keys == "l"


def test_keys_can_change_places() -> None:
    changed = key_map_of({"log": "t", "triage": "l", "up": ["j"], "down": ["k"]})
    assert changed.problems == ()
    assert (changed.shown("log"), changed.shown("triage"), changed.shown("up")) == ("t", "l", "j")


def test_one_that_falls_back_takes_along_what_was_put_in_its_place() -> None:
    """quit wants t, which triage has; so quit keeps q, and log cannot have it."""
    changed = key_map_of({"quit": "t", "log": "q"})
    assert len(changed.problems) == 2
    assert changed.keys == keys.KEYS


def test_every_key_is_read_as_it_is_shown() -> None:
    for key in keys.KEYS:
        for written in key.keys.split(","):
            assert normal(written) == written
        again = key_map_of({key.id: key.keys.split(",")})
        assert again.problems == ()
        assert next(one for one in again.keys if one.id == key.id).keys == key.keys


NAMES = st.sampled_from([key.id for key in keys.KEYS])
WRITTEN = st.one_of(
    st.sampled_from(["a", "Z", "ctrl+a", "f5", "?", "+", "ctrl++", "escape", "j", "q", "é", "日"]), st.text(max_size=6)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, st.one_of(WRITTEN, st.lists(WRITTEN, max_size=3)), max_size=8))
def test_whatever_is_written_a_key_means_one_thing(table: dict[str, object]) -> None:
    changed = key_map_of(table)
    owner: dict[str, str] = {}
    for key in changed.keys:
        for one in filter(None, key.keys.split(",")):
            assert owner.setdefault(one, key.id) == key.id
    assert all(changed.shown(name) for name in ("quit", "help", "back"))
    assert isinstance(changed, KeyMap)


@pytest.mark.parametrize("asked_on", keys.SCREENS)
def test_the_help_tells_every_key_once_screen_by_screen(asked_on: str) -> None:
    lines = ["".join(span.text for span in line) for line in help_lines(asked_on, 400, UNICODE, KeyMap())]
    told = lines[: lines.index(" signs")]
    for key in keys.KEYS:
        if not key.id.startswith("chart."):
            assert sum(line[3:16].rstrip() == key.shown and line.endswith(key.help) for line in told) == 1, key.id
    assert not any("fleet" in line for line in told), "what nobody sees on the screen"
    titles = [line for line in told if line.startswith(" ") and not line.startswith("  ")]
    assert len(titles) == len(set(titles)) >= 5
