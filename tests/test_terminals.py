"""The installed program in terminals and on links of every kind, each a real pseudo-terminal."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.terminal import Terminal
from tests.test_pty import TRAINMON, append, assert_restored, log, row

__all__ = ["log"]

_SGR = re.compile(rb"\x1b\[([\d;:]*)m")
# Keys, and what shows that they were obeyed: an Esc that is followed at once would be the Alt of the next key.
_LIST = "by trouble"
_TOUR = (
    ("t", r"step \d of 7"),
    ("\x1b", _LIST),
    ("l", "n next  / filter"),
    ("\x1b", _LIST),
    (":", "open what is under the cursor"),
    ("\x1b", "first cause wins"),
)


def colours(output: bytes) -> set[str]:
    """The kinds of colour codes in it: "16", "256", "truecolor", "default"."""
    found = set()
    for codes in _SGR.findall(output):
        parts = iter(codes.replace(b":", b";").split(b";"))
        for part in parts:
            number = int(part or b"0")
            if number in (38, 48):
                kind = next(parts)
                found.add("truecolor" if kind == b"2" else "256")
                for _ in range(3 if kind == b"2" else 1):
                    next(parts)
            elif number in (39, 49):
                found.add("default")
            elif 30 <= number <= 47 or 90 <= number <= 107:
                found.add("16")
    return found


def tour(log: Path, environment: dict[str, str], *options: str) -> bytes:
    """What is written on a way through the screens; the terminal is as it was when it is left."""
    with Terminal([TRAINMON, "watch", *options, str(log)], environment=environment) as terminal:
        terminal.wait_for(r"\b3\.0")
        for key, shown in _TOUR:
            terminal.send(key)
            terminal.wait_for(shown)
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)
        return terminal.output


@pytest.mark.parametrize(
    ("environment", "kinds"),
    [
        ({"NO_COLOR": "1"}, set()),
        ({"TERM": "linux"}, {"16"}),
        ({"TERM": "screen", "TRAINMON_THEME": "light"}, {"16"}),
        ({"COLORTERM": "truecolor"}, {"truecolor"}),
    ],
)
def test_colours_are_those_that_the_terminal_has(log: Path, environment: dict[str, str], kinds: set[str]) -> None:
    output = tour(log, environment)
    assert colours(output) - {"default"} == kinds
    if not kinds:
        assert colours(output) == set(), "not even the default ones are named"
        assert b"\x1b[7m" in output or b";7m" in output, "the cursor is seen without colour"


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ()),
        ({"LC_ALL": "C"}, ()),  # Python writes UTF-8 there all the same
        ({"TERM": "linux"}, ()),  # no font of a console has braille
        ({}, ("--ascii",)),
    ],
)
def test_ascii(log: Path, environment: dict[str, str], options: tuple[str, ...]) -> None:
    assert tour(log, environment, *options).isascii()


def test_themes(log: Path) -> None:
    environment = {"COLORTERM": "truecolor"}
    with Terminal([TRAINMON, "watch", "--theme", "light", str(log)], environment=environment) as terminal:
        terminal.wait_for(r"\b3\.0")
        assert b"48;2;250;251;252" in terminal.output
        assert b"48;2;15;19;23" not in terminal.output
        terminal.send("T")
        while b"48;2;15;19;23" not in terminal.output:
            terminal.read_for(0.1)


def test_auto_asks_the_terminal_for_its_ground(log: Path) -> None:
    with Terminal([TRAINMON, "watch", "--theme", "auto", str(log)], environment={"COLORTERM": "truecolor"}) as terminal:
        while b"\x1b]11;?" not in terminal.output:
            terminal.read_for(0.1)
        terminal.send("\x1b]11;rgb:ffff/ffff/f0f0\x1b\\\x1b[?1;2c")
        terminal.wait_for(r"\b3\.0")
        assert b"48;2;250;251;252" in terminal.output
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


@pytest.mark.parametrize(("keys", "size"), [("", (80, 24)), ("t", (80, 24)), ("\r", (300, 100))])
def test_under_a_kilobyte_a_second_when_nothing_changes(log: Path, keys: str, size: tuple[int, int]) -> None:
    with Terminal([TRAINMON, "watch", str(log)], columns=size[0], rows=size[1]) as terminal:
        terminal.wait_for(r"\b3\.0")
        terminal.send(keys)
        terminal.wait_until_still()
        began = time.monotonic()
        count, _ = terminal.read_for(3.0)
        assert count < 1000 * (time.monotonic() - began)
        terminal.send("q")
        assert terminal.wait_exit() == 0


@pytest.mark.parametrize(("options", "most"), [(("--low-bandwidth",), 1.0), ((), 10.0)])
def test_frames_a_second_while_the_log_grows(log: Path, options: tuple[str, ...], most: float) -> None:
    with Terminal([TRAINMON, "watch", *options, str(log)]) as terminal:
        terminal.wait_for(r"\b3\.0")
        terminal.wait_until_still()
        began, bursts = time.monotonic(), 0
        for step in range(201, 261):
            append(log, row(step, 3.0 - 0.001 * step))
            bursts += terminal.read_for(0.04)[1]
        passed = time.monotonic() - began
        assert 0 < bursts <= most * passed + 2
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


@pytest.mark.parametrize("name", ["SIGQUIT", "SIGTERM"])
def test_signals_on_any_screen(log: Path, name: str) -> None:
    with Terminal([TRAINMON, "watch", str(log)]) as terminal:
        terminal.wait_for(r"\b3\.0")
        terminal.send("t")
        terminal.wait_for("step 1 of 7")
        terminal.signal(signal.Signals[name])
        assert terminal.wait_exit() == 128 + signal.Signals[name]
        assert_restored(terminal)


def test_a_crash_leaves_the_terminal_as_it_was_and_one_line(log: Path) -> None:
    code = (
        "import sys\nimport trainmon.tui.app as app\n"
        "def fail(self):\n    if self.rows: raise RuntimeError('lost its way')\n"
        "app.TrainmonApp._tick = fail\n"
        "from trainmon.cli import main\nsys.argv = ['trainmon', 'watch', sys.argv[1]]\nmain()\n"
    )
    with Terminal([sys.executable, "-c", code, str(log)], columns=200) as terminal:
        assert terminal.wait_exit() == 2
        assert_restored(terminal)
        assert "RuntimeError: lost its way" in terminal.text
        assert "Traceback" not in terminal.text


def test_a_storm_of_sizes(log: Path) -> None:
    with Terminal([TRAINMON, "watch", str(log)]) as terminal:
        terminal.wait_for(r"\b3\.0")
        for number in range(40):
            terminal.resize(20 + 37 * number % 280, 5 + 13 * number % 95)
            if number % 7 == 0:
                terminal.send("\rt\x1b\x1b"[number % 4])
            terminal.read_for(0.01)
        terminal.resize(40, 10)
        terminal.wait_for("PASS")
        terminal.resize(300, 100)
        terminal.wait_for(r"q quit")
        terminal.resize(80, 24)
        terminal.wait_for(r"q quit")
        terminal.send("q")
        assert terminal.wait_exit() == 0
        assert_restored(terminal)


def test_a_dumb_terminal_is_told_what_to_do_and_gets_no_control_sequences(log: Path) -> None:
    with Terminal([TRAINMON, "watch", str(log)], environment={"TERM": "dumb"}) as terminal:
        assert terminal.wait_exit() == 2
        assert b"TERM is dumb" in terminal.output
        assert b"--headless" in terminal.output
        assert b"\x1b" not in terminal.output
