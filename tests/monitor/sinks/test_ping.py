"""The dead man's ping, to a real server and to a file."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.monitor.sinks.conftest import Server
from tests.monitor.sinks.made import Said, fleet_of, run_of
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.ping import Ping, blindness
from trainmon.tails.clock import SystemClock
from trainmon.tails.status import FileStatus

CLOCK = SystemClock()
PATIENCE_S = 20.0


class StillClock:
    def __init__(self) -> None:
        self.now = 0.0

    def wall(self) -> float:
        return 1e9 + self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


SEEN = fleet_of(run_of())
BLIND = (
    replace(SEEN, reading=True),
    replace(SEEN, runs=()),
    replace(SEEN, problems=("/gone: permission denied",)),
    fleet_of(run_of(progress=0.5)),
    fleet_of(run_of(problems=("internal error",))),
    fleet_of(run_of(files=(FileStatus("x", "jsonl", 1, 1, 1, 1, 0, problem="x: permission denied"),))),
)


@pytest.mark.parametrize("blind", BLIND)
def test_it_pings_only_for_an_interval_in_which_all_was_seen(server: Server, blind: object) -> None:
    clock, said = StillClock(), Said()
    ping = Ping(f"http://127.0.0.1:{server.port}/alive", said, clock, interval_s=60.0)

    def pass_time(seconds: int, fleet: object = SEEN) -> None:
        for _ in range(seconds):
            clock.now += 1.0
            ping.look(fleet)  # type: ignore[arg-type]

    assert blindness(blind)  # type: ignore[arg-type]
    pass_time(300, blind)
    assert server.requests.empty(), "as long as nothing was ever seen"
    pass_time(61)
    assert server.requests.get(timeout=PATIENCE_S)[:2] == ("GET", "/alive")
    assert ping._thread is not None
    ping._thread.join(PATIENCE_S)
    pass_time(30)
    pass_time(1, blind)
    pass_time(29)
    assert server.requests.empty(), "it was blind for a moment"
    pass_time(60)
    assert server.requests.get(timeout=PATIENCE_S)
    for _ in range(120):
        clock.now += 1.0
        ping.look(SEEN, is_alive=False)
    assert server.requests.empty(), "nothing is looked at any more"
    assert said.lines == []


def test_a_file_is_touched_and_not_changed(tmp_path: Path) -> None:
    clock, said, path = StillClock(), Said(), tmp_path / "alive"
    path.write_text("mine")
    os.utime(path, (1, 1))
    ping = Ping(str(path), said, clock, interval_s=1.0)
    for _ in range(3):
        clock.now += 1.0
        ping.look(SEEN)
    until = time.monotonic() + PATIENCE_S
    while path.stat().st_mtime == 1:
        assert time.monotonic() < until
        time.sleep(0.02)
    assert path.read_text() == "mine"


def test_a_ping_that_fails_is_said_once(server: Server, tmp_path: Path) -> None:
    clock, said = StillClock(), Said()
    server.status = 503
    pings = [
        Ping(f"http://user:secret@127.0.0.1:{server.port}/", said, clock, interval_s=1.0),
        Ping(str(tmp_path / "none" / "alive"), said, clock, interval_s=1.0),
    ]
    for _ in range(6):
        clock.now += 1.0
        for ping in pings:
            ping.look(SEEN)
        time.sleep(0.1)
    lines = said.wait(2)
    assert len(lines) == 2
    assert not any("secret" in line for line in lines)
    assert any("none/alive" in line for line in lines)


def test_a_ping_follows_to_http_alone(server: Server) -> None:
    clock, said = StillClock(), Said()
    server.status, server.location = 302, "ftp://127.0.0.1/x"
    ping = Ping(f"http://127.0.0.1:{server.port}/", said, clock, interval_s=1.0)
    for _ in range(3):
        clock.now += 1.0
        ping.look(SEEN)
    assert said.wait()


@pytest.mark.parametrize("target", ["ftp://host/x", "file:///etc/passwd", "slack://x"])
def test_another_kind_of_url_is_refused(target: str) -> None:
    with pytest.raises(SinkError):
        Ping(target, Said(), CLOCK)


def test_a_device_is_not_touched(tmp_path: Path) -> None:
    clock, said, path = StillClock(), Said(), tmp_path / "pipe"
    os.mkfifo(path)
    ping = Ping(str(path), said, clock, interval_s=1.0)
    for _ in range(3):
        clock.now += 1.0
        ping.look(SEEN)
    assert "pipe" in said.wait()[0]
    assert stat.S_ISFIFO(path.stat().st_mode)
