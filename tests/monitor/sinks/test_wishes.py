"""What the user asked for: configuration under the command line, refused in one line where it cannot be."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.monitor.sinks.made import Marked, Said, episode, fleet_of, run_of
from trainmon.monitor.finding import Severity
from trainmon.monitor.sinks.alerting import Alerting
from trainmon.monitor.sinks.base import SinkError, Surroundings
from trainmon.monitor.sinks.event import Rank
from trainmon.monitor.sinks.settings import AlertSettings, from_config
from trainmon.monitor.user_config import ConfigError, config_path, read_config
from trainmon.tails.clock import SystemClock

CLOCK = SystemClock()
TEXT = """
[alerts]
level = "fail"
levels = { log = "warn" }
cooldown = "5m"
again = 7200
bell = true
desktop = true
log = "~/alerts.jsonl"
on_alert = "page-me --now"
notify = "mailto://me:secret@example.org"
ping = ["https://example.org/alive", "~/alive"]
shared_state = "/team"
[keys]
log = "ctrl+l"
"""


def written(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_all_of_it(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, TEXT))
    wanted = from_config(config.alerts)
    assert wanted == AlertSettings(
        level=Rank.FAIL,
        levels={"log": Rank.WARN},
        cooldown=300.0,
        again=7200.0,
        bell=True,
        desktop="auto",
        log=Path.home() / "alerts.jsonl",
        on_alert="page-me --now",
        notify=("mailto://me:secret@example.org",),
        ping=("https://example.org/alive", str(Path.home() / "alive")),
        shared_state=Path("/team"),
    )
    assert wanted.level_of("log") == Rank.WARN
    assert wanted.level_of("bell") == Rank.FAIL
    assert dict(config.keys) == {"log": "ctrl+l"}
    assert config.problems == ()


def test_flags_stand_above_it() -> None:
    wanted = from_config({"level": "warn", "log": "a", "bell": True, "notify": ["x://"]})
    flags = {"level": "page", "log": Path("b"), "bell": False, "notify": (), "ping": ("p",), "on_alert": None}
    assert wanted.with_flags(flags) == AlertSettings(
        level=Rank.PAGE, log=Path("b"), bell=True, notify=("x://",), ping=("p",)
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"colour": 1}, "alerts.colour: trainmon has no such setting"),
        ({"level": "loud"}, "alerts.level: must be one of page, fail, warn"),
        ({"levels": {"pigeon": "warn"}}, "there is no sink pigeon"),
        ({"bell": "yes"}, "must be true or false"),
        ({"cooldown": "soon"}, "is no length of time"),
        ({"again": 1}, "must be 60 s or more"),
        ({"on_alert": ["a", "b"]}, "must be a text in quotes"),
        ({"notify": [1]}, "must be a text in quotes"),
        ({"desktop": "growl"}, "one of auto, osc9, osc777"),
        ({"log": 7}, "must be a text in quotes"),
    ],
)
def test_what_cannot_be_is_one_line(table: dict[str, object], words: str) -> None:
    with pytest.raises(SinkError) as error:
        from_config(table)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("[alerts", "mend it"), ("alerts = 3", "must be a table"), ("keys = []", "must be a table"), ("\0", "mend it")],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_tables_that_are_unknown_are_said(tmp_path: Path) -> None:
    [line] = read_config(written(tmp_path, "[colours]\na = 1\n[x]\n")).problems
    assert "colours, x" in line


def test_no_file_is_no_configuration(tmp_path: Path) -> None:
    assert read_config(tmp_path / "none.toml").alerts == {}
    assert read_config(tmp_path / "none.toml" / "config.toml").alerts == {}


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chmod o-w"):
        read_config(written(tmp_path, TEXT, mode=0o666))
    with pytest.raises(ConfigError, match="directory; mend or remove"):
        read_config(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="plain file; mend or remove"):
        read_config(tmp_path / "pipe")


@pytest.mark.requires("root")
def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    os.chown(path, 12345, -1)
    with pytest.raises(ConfigError, match="another user"):
        read_config(path)


def test_it_is_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert config_path() == tmp_path / "trainmon" / "config.toml"


def test_a_sink_without_its_terminal_is_refused() -> None:
    with pytest.raises(SinkError, match="no terminal"):
        Alerting(AlertSettings(bell=True), Surroundings(CLOCK, Said()), Marked())


def test_every_sink_hears_what_its_level_lets_through(tmp_path: Path) -> None:
    written: list[str] = []
    log = tmp_path / "alerts.jsonl"
    wanted = AlertSettings(bell=True, log=log, levels={"log": Rank.WARN})
    alerting = Alerting(wanted, Surroundings(CLOCK, Said(), written.append), Marked())
    quiet = episode("w", severity=Severity.WARN)
    for episodes in ((), (quiet,), (quiet, episode("f", "grad.norm", incident="if", step=900.0))):
        alerting.take(fleet_of(run_of(*episodes)))
    alerting.close(20.0)
    assert written == ["\a"]
    assert log.read_text().count('"opened"') == 2


@pytest.mark.requires("checkout")
def test_the_example_of_the_documents_can_be_used(tmp_path: Path) -> None:
    from trainmon.tui.keymap import key_map_of

    page = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    config = read_config(written(tmp_path, example))
    assert from_config(config.alerts).notify
    assert set(config.alerts) == {one.name for one in fields(AlertSettings)}
    assert key_map_of(config.keys).problems == ()
