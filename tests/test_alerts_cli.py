"""``trainmon watch`` with alerts, as its users run it: processes, files, a server, a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitor.sinks.conftest import Server, server
from tests.monitor.sinks.test_outlets import PATIENCE_S
from tests.monitor.test_headless import Headless, append, rows, start
from tests.terminal import Terminal
from tests.test_pty import TRAINMON, log, row
from trainmon.tails.sealed import sealed

__all__ = ["log", "server", "start"]

NAN = "".join(json.dumps({"step": step, "loss": float("nan"), "lr": 1e-3}) + "\n" for step in range(151, 156)).encode()


def lines_of(path: Path, count: int) -> list[dict[str, object]]:
    """The objects of a JSONL file, once there are `count`."""
    until = time.monotonic() + PATIENCE_S
    while not path.is_file() or path.read_text().count("\n") < count:
        assert time.monotonic() < until, path
        time.sleep(0.05)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_headless_tells_everyone(start: type[Headless], tmp_path: Path, server: Server) -> None:
    pytest.importorskip("apprise")
    metrics, alerts, seen = tmp_path / "metrics.jsonl", tmp_path / "alerts.jsonl", tmp_path / "seen.jsonl"
    metrics.write_bytes(rows(1, 150))
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat >> '{seen}'\n")
    hook.chmod(0o755)
    program = start(
        "metrics.jsonl",
        "--alert-log",
        str(alerts),
        "--on-alert",
        f"'{hook}'",
        "--notify",
        f"json://127.0.0.1:{server.port}/",
        "--shared-state",
        str(tmp_path / "team"),
    )
    program.wait_for("state", state="running", step=150.0)
    append(metrics, NAN)
    [alert] = lines_of(alerts, 1)
    assert (alert["event"], alert["run"], alert["level"]) == ("opened", "metrics.jsonl", "page")
    assert lines_of(seen, 1) == [alert]
    posted = json.loads(server.requests.get(timeout=PATIENCE_S)[2])
    assert posted["title"].startswith("trainmon: FAIL metrics.jsonl: training loss: non-finite values")
    episode = alert["episode"]
    assert isinstance(episode, dict)
    mark = {
        "schema": "trainmon.shared/1",
        "what": "acknowledge",
        "episode": episode["id"],
        "log": os.path.realpath(metrics),
        "at": 1.0,
    }
    (tmp_path / "team" / "ann@host.acks.jsonl").write_bytes(sealed(json.dumps(mark).encode()))
    told = program.wait_for("mark", episode=episode["id"])
    assert told["what"] == "acknowledge"
    assert told["by"]
    append(metrics, rows(156, 400))
    assert [one["event"] for one in lines_of(alerts, 2)] == ["opened", "recovered"]
    program.process.send_signal(signal.SIGTERM)
    program.wait_for("end")
    program.exit_status()
    assert json.loads(server.requests.get(timeout=PATIENCE_S)[2])["type"] == "success"


def test_the_last_alert_goes_out_before_it_ends(start: type[Headless], tmp_path: Path) -> None:
    metrics, alerts = tmp_path / "metrics.jsonl", tmp_path / "alerts.jsonl"
    metrics.write_bytes(rows(1, 150))
    program = start("metrics.jsonl", "--alert-log", str(alerts), "--until-idle", "1")
    program.wait_for("state", step=150.0)
    append(metrics, NAN)
    program.wait_for("end")
    assert program.exit_status() == 1
    assert [one["event"] for one in lines_of(alerts, 1)] == ["opened"]


def test_a_file_is_touched_as_long_as_the_log_can_be_read(tmp_path: Path) -> None:
    metrics, alive, home = tmp_path / "metrics.jsonl", tmp_path / "alive", tmp_path / "config"
    metrics.write_bytes(rows(1, 150))
    (home / "trainmon").mkdir(parents=True)
    (home / "trainmon" / "config.toml").write_text('[alerts]\nping_every = "0.5s"\n')
    command = [TRAINMON, "watch", "--headless", str(metrics), "--ping", str(alive)]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as program:
        until = time.monotonic() + PATIENCE_S
        while not alive.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        metrics.rename(tmp_path / "away")
        time.sleep(2.0)  # it may still be on its way
        os.utime(alive, (1, 1))
        time.sleep(1.5)
        assert alive.stat().st_mtime == 1, "the log cannot be seen any more"
        (tmp_path / "away").rename(metrics)
        while alive.stat().st_mtime == 1:
            assert time.monotonic() < until + PATIENCE_S
            time.sleep(0.05)
        program.terminate()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--on-alert", "a 'b"), "No closing quotation"),
        (("--notify", "nosuch://secret"), "notify"),
        (("--ping", "ftp://host"), "ping"),
        (("--shared-state", "metrics.jsonl"), "metrics.jsonl"),
        (("--alert-level", "loud"), "--alert-level"),
    ],
)
def test_what_cannot_be_set_up_ends_it_in_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 20))
    command = [TRAINMON, "watch", "--headless", "metrics.jsonl", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
    assert "secret" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("text", ["[alerts]\nbells = true\n", "[alerts\n", '[alerts]\nlevel = "loud"\n'])
def test_a_configuration_that_cannot_be_used_ends_it_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "trainmon").mkdir()
    (tmp_path / "trainmon" / "config.toml").write_text(text)
    done = subprocess.run(
        [TRAINMON, "watch", "--headless", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "config.toml" in line


def test_a_file_beside_a_log_can_name_no_command(tmp_path: Path) -> None:
    """Neither trainmon.toml nor a config.toml in the working directory."""
    owned = tmp_path / "owned"
    for name in ("trainmon.toml", "config.toml", "trainmon/config.toml"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'[alerts]\nstanding = true\non_alert = "touch {owned}"\n[keys]\nquit = "Q"\n')
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 150) + NAN)
    command = [TRAINMON, "watch", "--headless", "metrics.jsonl", "--until-idle", "0.5", "--alert-log", "alerts"]
    done = subprocess.run([*command, "--alert-standing"], capture_output=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 1
    assert "opened" in (tmp_path / "alerts").read_text()
    assert not owned.exists()


@pytest.fixture
def ringing(log: Path, tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "trainmon").mkdir()
    (tmp_path / "trainmon" / "config.toml").write_text('[alerts]\nbell = true\n[keys]\nquit = "ctrl+x"\nlog = "z"\n')
    environment = {"XDG_CONFIG_HOME": str(tmp_path), "TERM": "xterm-256color"}
    with Terminal([TRAINMON, "watch", "--desktop", "osc777", str(log)], environment=environment) as terminal:
        terminal.wait_for(r"\b3\.0")
        yield terminal


def test_the_screen_rings_and_obeys_the_keys_of_the_user(ringing: Terminal, log: Path) -> None:
    ringing.wait_for("z is the key of snooze")
    for step in range(201, 206):
        append(log, row(step, float("nan")))
    until = time.monotonic() + PATIENCE_S
    while b"\x1b]777;notify;trainmon;FAIL test_the_screen" not in ringing.output:
        assert time.monotonic() < until, ringing.text
        ringing.read_for(0.1)
    assert b"\a" in ringing.output
    ringing.send("q")
    ringing.wait_for("ctrl\\+x quit")
    ringing.send("\x18")
    assert ringing.wait_exit() == 0


def test_a_bell_without_a_terminal_is_said_and_the_rest_goes_out(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 150) + NAN)
    options = ("--bell", "--alert-log", "log", "--alert-standing", "--until-idle", "0.5")
    done = subprocess.run(
        [TRAINMON, "watch", "--headless", "metrics.jsonl", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=60,
        cwd=tmp_path,
        start_new_session=True,
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert ["no terminal" in event["text"] for event in events if event["event"] == "problem"] == [True]
    assert "opened" in (tmp_path / "log").read_text()


def test_nothing_is_sent_unless_asked_for(start: type[Headless], tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_bytes(rows(1, 150))
    program = start("metrics.jsonl", "--until-idle", "1")
    program.wait_for("state", step=150.0)
    append(metrics, NAN)
    program.wait_for("end")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.jsonl"]
