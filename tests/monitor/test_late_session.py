"""A session that is loaded late is one that has found nothing yet, and then the session; also when it ends early."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from trainmon.monitor.late_session import LateMonitor
from trainmon.monitor.session import Monitor

_PATIENCE_S = 60.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": step, "loss": 3.0}) + "\n" for step in range(50)))
    return path


def made(log: Path) -> Monitor:
    return Monitor([str(log)], cwd=log.parent)


def test_it_looks_for_runs_until_it_is_there_and_then_has_them(log: Path) -> None:
    late = LateMonitor(lambda: made(log))
    assert (late.latest().runs, late.latest().reading, late.is_alive()) == ((), True, True)
    found = threading.Event()
    late.call_when_new(lambda: found.set() if any(run.last_step for run in late.latest().runs) else None)
    late.attend(frozenset())  # asked before it is there
    late.start()
    late.start()
    assert found.wait(_PATIENCE_S)
    assert late.latest().runs[0].last_step == 49.0
    assert late.is_alive()
    late.stop()


def test_what_is_asked_before_it_is_there_is_done_when_it_is(log: Path) -> None:
    asked: list[str] = []
    there = threading.Event()

    class Listening(Monitor):
        def acknowledge(self, run: str, episode_id: str) -> None:
            asked.append(f"{run} {episode_id}")

        def start(self) -> None:
            super().start()
            there.set()

    late = LateMonitor(lambda: Listening([str(log)], cwd=log.parent))
    late.acknowledge("run", "one")
    late.start()
    assert there.wait(_PATIENCE_S)
    late.acknowledge("run", "two")
    assert asked == ["run one", "run two"]
    late.stop()


def test_stopped_before_it_is_there_it_never_begins(log: Path) -> None:
    may_go_on, stopped = threading.Event(), threading.Event()

    class Watching(Monitor):
        def start(self) -> None:
            raise AssertionError("begun after the end")

        def stop(self) -> None:
            super().stop()
            stopped.set()

    def make() -> Monitor:
        assert may_go_on.wait(_PATIENCE_S)
        return Watching([str(log)], cwd=log.parent)

    late = LateMonitor(make)
    late.start()
    late.stop()
    may_go_on.set()
    assert stopped.wait(_PATIENCE_S)


def test_what_cannot_be_made_is_said(log: Path) -> None:
    def make() -> Monitor:
        raise OSError("no more threads")

    told = threading.Event()
    late = LateMonitor(make)
    late.call_when_new(told.set)
    late.start()
    assert told.wait(_PATIENCE_S)
    assert late.latest().problems == ("cannot begin: OSError: no more threads",)
    assert not late.is_alive()
    with pytest.raises(LookupError):
        late.search_log("a.log", 1, "x", 1)
    late.stop()


def test_one_that_cannot_start_says_so_and_what_to_do(log: Path) -> None:
    class NoThread(Monitor):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    late, told = LateMonitor(lambda: NoThread([str(log)], cwd=log.parent)), threading.Event()
    late.call_when_new(told.set)
    late.start()
    assert told.wait(_PATIENCE_S)
    (problem,) = late.latest().problems
    assert "can't start new thread" in problem
    assert "ulimit -v" in problem
    assert not late.is_alive()
    late.stop()
