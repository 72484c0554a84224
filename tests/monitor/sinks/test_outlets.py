"""Each sink with the real thing behind it: files, programs, servers on the loopback."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.monitor.sinks.made import HOSTILE, Said, episode, event_of
from trainmon.monitor.sinks.alert_log import AlertLog, append
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.command import Command
from trainmon.monitor.sinks.terminal import Bell, Desktop
from trainmon.monitor.sinks.worker import MOST_WAITING, Worker
from trainmon.tails.clock import SystemClock

CLOCK = SystemClock()
PATIENCE_S = 20.0


def wait_for(path: Path) -> str:
    """The content of a file, once it has some."""
    until = time.monotonic() + PATIENCE_S
    while not (path.is_file() and path.stat().st_size):
        assert time.monotonic() < until, f"{path} was not written"
        time.sleep(0.02)
    return path.read_text(encoding="utf-8")


# Terminal


def test_the_bell_rings_for_what_is_open() -> None:
    written: list[str] = []
    bell = Bell(written.append)
    bell.send([event_of(), event_of(kind="recovered")])
    bell.send([event_of(kind="recovered")])
    assert written == ["\a"]


@pytest.mark.parametrize(("environment", "begin"), [({}, "\x1b]9;"), ({"TERM": "rxvt-unicode"}, "\x1b]777;notify;")])
def test_a_desktop_notification_is_one_sequence(environment: dict[str, str], begin: str) -> None:
    written: list[str] = []
    Desktop(written.append, environment).send([event_of(name=HOSTILE), event_of(kind="recovered")])
    [sequence] = written
    assert sequence.startswith(begin)
    assert sequence.endswith("\x1b\\")
    assert sequence.count("\x1b") == 2
    assert "\a" not in sequence
    assert "\n" not in sequence
    assert "and 1 more" in sequence


def test_tmux_and_screen_pass_it_on() -> None:
    for environment, begin in (({"TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]9;"), ({"STY": "1.pts"}, "\x1bP\x1b]9;")):
        written: list[str] = []
        Desktop(written.append, environment).send([event_of()])
        assert written[0].startswith(begin)
        assert written[0].endswith("\x1b\\")
        assert written[0].count("\x1b\\") - written[0].count("\x1b\x1b\\") == 1, "ends once"


# Alert log


def test_the_alert_log_is_added_to(tmp_path: Path) -> None:
    path, said = tmp_path / "alerts.jsonl", Said()
    path.write_text('{"torn": ')
    log = AlertLog(path, said, CLOCK)
    log.send([event_of(name=HOSTILE), event_of(kind="recovered")])
    log.close(PATIENCE_S)
    torn, *lines = path.read_text(encoding="utf-8").splitlines()
    assert torn == '{"torn": '
    documents = [json.loads(line) for line in lines]
    assert [document["event"] for document in documents] == ["opened", "recovered"]
    assert documents[0]["schema"] == "trainmon.alert/1"
    assert documents[0]["run"] == HOSTILE
    assert documents[0]["episode"]["what"] == "loss is NaN since step 100"
    assert documents[0]["level"] == documents[1]["peak"] == "page"
    assert said.lines == []


def test_several_writers_of_one_alert_log(tmp_path: Path) -> None:
    path, said = tmp_path / "alerts.jsonl", Said()
    logs = [AlertLog(path, said, CLOCK) for _ in range(4)]
    for number in range(40):
        logs[number % 4].send([event_of(name=f"run {number}")])
    for log in logs:
        log.close(PATIENCE_S)
    names = [json.loads(line)["run"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(names) == sorted(f"run {number}" for number in range(40))


class Writing:
    """A clock at whose sleep somebody else writes on."""

    def __init__(self, path: Path, parts: list[str]) -> None:
        self.path, self.parts = path, parts

    def wall(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        assert 0 < seconds < 0.1, "nobody is held up long"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(self.parts.pop(0) if self.parts else "")


def test_a_line_that_another_writer_has_half_written_is_waited_for_and_a_torn_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"run": ')
    append(path, b"one\n", Writing(path, ['"ot', 'her"', "}\n"]))
    assert path.read_text() == '{"run": "other"}\none\n'
    path.write_text('{"run": ')
    append(path, b"one\n", Writing(path, ['"ot']))
    assert path.read_text() == '{"run": "ot\none\n'
    path.write_text("{")
    append(path, b"one\n", Writing(path, ["x"] * 1000))  # a writer that never ends its line holds nobody up
    assert path.read_text().endswith("x\none\n")


def test_a_log_that_was_rotated_goes_on_and_one_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    path, said = tmp_path / "alerts.jsonl", Said()
    log = AlertLog(path, said, CLOCK)
    log.send([event_of(name="one")])
    wait_for(path)
    path.rename(tmp_path / "alerts.jsonl.1")
    log.send([event_of(name="two")])
    assert json.loads(wait_for(path))["run"] == "two"
    log.close(PATIENCE_S)
    bad = AlertLog(tmp_path / "none" / "alerts.jsonl", said, CLOCK)
    bad.send([event_of()])
    assert "alerts wait to be written" in said.wait()[0]
    (tmp_path / "none").mkdir()
    bad.close(PATIENCE_S)
    assert "opened" in (tmp_path / "none" / "alerts.jsonl").read_text()


def test_a_pipe_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    path, said = tmp_path / "pipe", Said()
    os.mkfifo(path)
    log = AlertLog(path, said, CLOCK)
    log.send([event_of()])
    assert "pipe" in said.wait()[0]
    log.close(0.1)


# Command


def python(code: str, *arguments: str) -> str:
    quoted = code.replace("'", "'\"'\"'")
    return " ".join([sys.executable, "-c", f"'{quoted}'", *arguments])


def test_a_command_gets_the_episode_and_no_word_of_the_log_elsewhere(tmp_path: Path) -> None:
    out, said = tmp_path / "out", Said()
    code = (
        "import json, os, sys; "
        "open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], dict(os.environ), sys.stdin.read()]))"
    )
    command = Command(python(code, str(out), "'a b'", "'$HOME;'"), said, CLOCK)
    command.send([event_of(episode(what=HOSTILE), name=HOSTILE)])
    command.close(PATIENCE_S)
    arguments, environment, stdin = json.loads(wait_for(out))
    assert arguments == ["a b", "$HOME;"], "split as by a shell, without one"
    assert not any("owned" in value for value in environment.values())
    document = json.loads(stdin)
    assert document["run"] == document["episode"]["what"] == HOSTILE
    assert said.lines == []


def test_a_command_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    said = Said()
    command = Command(python("import sys; print('no \\x1b[31mroute', file=sys.stderr); sys.exit(3)"), said, CLOCK)
    command.send([event_of()])
    command.close(PATIENCE_S)
    [line] = said.lines
    assert line.endswith("ended with status 3 (no route)")
    missing = Command(str(tmp_path / "no such program"), said, CLOCK)
    missing.send([event_of()])
    missing.close(PATIENCE_S)
    assert "No such file" in said.lines[1]


@pytest.mark.parametrize("line", ["", "   ", "a 'b"])
def test_a_command_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(SinkError):
        Command(line, Said(), CLOCK)


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    pid, said = tmp_path / "pid", Said()
    code = (
        "import os, signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = subprocess.Popen(['sleep', '1000']); open(sys.argv[1], 'w').write(str(child.pid)); time.sleep(1000)"
    )
    command = Command(python(code, str(pid)), said, CLOCK, time_limit_s=2.0)
    began = time.monotonic()
    command.send([event_of()])
    assert time.monotonic() - began < 1.0, "whoever sends waits for nothing"
    assert "took over 2 s and was stopped" in said.wait()[0]
    child = int(wait_for(pid))
    until = time.monotonic() + PATIENCE_S
    while _runs(child):
        assert time.monotonic() < until
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_only_so_many_commands_run_at_once_and_none_is_lost(tmp_path: Path) -> None:
    said = Said()
    code = (
        "import os, sys, time; open(os.path.join(sys.argv[1], f'begin-{os.getpid()}'), 'w').close(); "
        "now = len(os.listdir(sys.argv[1])) - 2 * sum(n.startswith('end') for n in os.listdir(sys.argv[1])); "
        "time.sleep(0.1); open(os.path.join(sys.argv[1], f'end-{os.getpid()}-{now}'), 'w').close()"
    )
    command = Command(python(code, str(tmp_path)), said, CLOCK)
    command.send([event_of(name=str(number)) for number in range(6)])
    command.close(PATIENCE_S)
    ends = [file.name.rpartition("-")[2] for file in tmp_path.glob("end-*")]
    assert len(ends) == 6
    assert max(map(int, ends)) <= 2


def test_leaving_stops_a_command_that_takes_too_long() -> None:
    said = Said()
    command = Command("sleep 1000", said, CLOCK)
    command.send([event_of()])
    command.close(0.5)
    assert "did not end in time" in said.wait()[0]


def test_a_command_that_goes_on_behind_is_not_waited_for(tmp_path: Path) -> None:
    said = Said()
    command = Command("sh -c 'sleep 30 & echo $! > \"$0\"' " + str(tmp_path / "pid"), said, CLOCK)
    command.send([event_of()])
    began = time.monotonic()
    command.close(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S / 2
    os.kill(int(wait_for(tmp_path / "pid")), signal.SIGKILL)
    assert said.lines == []


# Worker


def test_what_does_not_fit_is_dropped_and_said() -> None:
    said, done, go = Said(), [], threading.Event()

    def work(events: list[object]) -> None:
        go.wait(PATIENCE_S)
        done.extend(events)

    worker = Worker("slow", work, said, clock=CLOCK, most_at_once=1)  # type: ignore[arg-type]
    for number in range(MOST_WAITING + 20):
        worker.put(event_of(name=str(number)))
    assert "the oldest are dropped" in said.wait()[0]
    go.set()
    assert worker.close(PATIENCE_S)
    assert done[-1].run == str(MOST_WAITING + 19)  # type: ignore[attr-defined]
    assert len(said.lines) == 1


def test_a_worker_that_fails_goes_on() -> None:
    said, done = Said(), []

    def work(events: list[object]) -> None:
        if not done and not said.lines:
            raise RuntimeError("once")
        done.extend(events)

    worker = Worker("odd", work, said, clock=CLOCK, most_at_once=1)  # type: ignore[arg-type]
    worker.put(event_of(name="a"))
    worker.put(event_of(name="b"))
    assert worker.close(PATIENCE_S)
    assert said.lines == ["odd: RuntimeError: once"]
    assert len(done) == 1
