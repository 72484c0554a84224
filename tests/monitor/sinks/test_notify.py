"""Messages through apprise, to a real server."""

from __future__ import annotations

import json

import pytest

from tests.monitor.sinks.conftest import Server
from tests.monitor.sinks.made import HOSTILE, Said, episode, event_of
from trainmon.monitor.finding import Severity
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.event import Rank
from trainmon.tails.clock import SystemClock

CLOCK = SystemClock()
PATIENCE_S = 20.0


def test_notify_sends_one_message_for_what_came_together(server: Server) -> None:
    pytest.importorskip("apprise")
    from trainmon.monitor.sinks.notify import Notify

    said = Said()
    sink = Notify([f"json://127.0.0.1:{server.port}/hook"], said, CLOCK, gather_s=0.5)
    sink.send([event_of(episode(severity=Severity.WARN, what=HOSTILE), rank=Rank.WARN), event_of(name="b")])
    sink.send([event_of(kind="recovered", name="c")])
    method, path, body = server.requests.get(timeout=PATIENCE_S)
    assert (method, path) == ("POST", "/hook")
    document = json.loads(body)
    assert document["title"] == "trainmon: FAIL b: training loss: non-finite values at step 100 (and 2 more)"
    assert document["type"] == "failure"
    assert "recovered c" in document["message"]
    for obeyed in ("<!channel>", "@everyone", "[win](", "\x1b", "`id`"):
        assert obeyed not in document["message"]
    sink.send([event_of(kind="recovered", name="c")])
    sink.close(PATIENCE_S)
    assert json.loads(server.requests.get(timeout=PATIENCE_S)[2])["type"] == "success"
    assert server.requests.empty()
    assert said.lines == []


def test_notify_tries_again(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    from trainmon.monitor.sinks import notify

    monkeypatch.setattr(notify, "RETRY_S", (0.1, 0.1, 0.1))
    said = Said()
    server.status = 500
    sink = notify.Notify([f"json://user:secret@127.0.0.1:{server.port}/"], said, CLOCK, gather_s=0.0)
    sink.send([event_of()])
    for _ in range(4):
        server.requests.get(timeout=PATIENCE_S)
    assert said.wait(2) == [
        "notify: json did not take an alert; it will be tried again",
        "notify: json does not take alerts; 1 given up",
    ]
    server.status = 200
    sink.send([event_of()])
    assert server.requests.get(timeout=PATIENCE_S)
    sink.close(PATIENCE_S)
    assert len(said.lines) == 2


def test_an_url_that_apprise_does_not_know_is_refused_without_its_secrets() -> None:
    pytest.importorskip("apprise")
    from trainmon.monitor.sinks.notify import Notify

    with pytest.raises(SinkError) as error:
        Notify(["nosuch://token-1234@host"], Said(), CLOCK)
    assert "token" not in str(error.value)
