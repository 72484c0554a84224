"""The live session on real files that grow, rotate, restart and appear, and on engines that break."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

from trainmon.monitor import session as module
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import engine_of, judge
from trainmon.monitor.session import Monitor
from trainmon.monitor.settings import Settings
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.clock import Clock
from trainmon.tails.discover import RunFiles
from trainmon.tails.preview import LEAST_BYTES
from trainmon.tails.record import Parsed

LOSS = SignalKey("loss.train")
Start = Callable[..., Monitor]


def rows(first: int, last: int, loss: float = 2.0, **more: float) -> bytes:
    lines = []
    for step in range(first, last + 1):
        value = loss + 0.01 * ((7 * step) % 5)
        lines.append(
            json.dumps({"step": step, "loss": value, "grad_norm": 0.5 + 0.01 * (step % 7), "lr": 1e-3, **more})
        )
    return ("\n".join(lines) + "\n").encode()


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def wait(session: Monitor, holds: Callable[[FleetSnapshot], bool], seconds: float = 20.0) -> FleetSnapshot:
    """The first snapshot of which `holds` is true; what was seen last is shown when none comes."""
    end = monotonic() + seconds
    while True:
        fleet = session.latest()
        if holds(fleet):
            return fleet
        assert monotonic() < end, fleet
        sleep(0.02)


def modified_at(path: Path) -> float:
    return path.stat().st_mtime


def named(fleet: FleetSnapshot, name: str) -> RunSnapshot:
    return next(run for run in fleet.runs if run.name == name)


def only(fleet: FleetSnapshot) -> RunSnapshot:
    (run,) = fleet.runs
    return run


def verdicts(run: RunSnapshot) -> tuple[object, ...]:
    """What follows from the content of the log, not from when it was read."""
    return (run.episodes, [check for check in run.checks if check.id != "job.state"])


def reached(step: float) -> Callable[[FleetSnapshot], bool]:
    return lambda fleet: bool(fleet.runs) and not fleet.reading and only(fleet).last_step == step


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a session; all are stopped in the end."""
    started: list[Monitor] = []

    def begin(*targets: Path | str, **more: object) -> Monitor:
        made = Monitor([str(target) for target in targets], cwd=tmp_path, **more)  # type: ignore[arg-type]
        made.start()
        started.append(made)
        return made

    yield begin
    for session in started:
        session.stop()


def test_a_growing_log_gives_what_a_finished_one_gives(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 150))
    session = start(log)
    wait(session, reached(150))
    for first in range(151, 200, 7):
        append(log, rows(first, first + 6, loss=6.0 if first == 165 else 2.0))
        sleep(0.03)
    wait(session, reached(199))
    finished = judge([str(log)], cwd=tmp_path).runs[0]
    # Verdicts are worked out once a second.
    live = only(wait(session, lambda fleet: verdicts(only(fleet)) == verdicts(finished)))
    assert any(episode.kind == "spike" for episode in live.episodes)
    for key, view in finished.series.items():
        np.testing.assert_array_equal(live.series[key].values, view.values)


def test_a_truncated_log_begins_another_attempt(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 120))
    session = start(log)
    wait(session, reached(120))
    log.write_bytes(rows(100, 110))
    run = only(wait(session, reached(110)))
    assert run.attempts == ((1.0, 120.0), (100.0, 110.0))


def test_a_traceback_that_ends_an_old_log_does_not_make_it_young(start: Start, tmp_path: Path) -> None:
    """Its last lines are held back for a moment, since more of it may come; that is no growth."""
    log = tmp_path / "train.log"
    error = b'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    f()\nValueError: shard 7\n'
    log.write_bytes(b"".join(b"step %d | loss 2.5%d | grad_norm 0.5\n" % (step, step) for step in range(1, 60)) + error)
    os.utime(log, (1_000_000_000, 1_000_000_000))
    session = start(tmp_path)
    run = wait(session, lambda fleet: bool(fleet.runs) and fleet.runs[0].state.value == "crashed").runs[0]
    assert run.age_s is not None
    assert run.age_s > 1e8


def test_a_rotated_log_is_read_to_its_end_and_goes_on_in_the_new_file(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 100))
    session = start(log)
    wait(session, reached(100))
    append(log, rows(101, 103))
    log.rename(tmp_path / "metrics.jsonl.1")
    log.write_bytes(rows(104, 120))
    run = only(wait(session, reached(120)))
    assert run.step_count == 120


def test_a_run_that_appears_later_is_found(start: Start, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "metrics.jsonl").write_bytes(rows(1, 60))
    session = start(tmp_path)
    wait(session, lambda fleet: len(fleet.runs) == 1 and not fleet.reading)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "metrics.jsonl").write_bytes(rows(1, 70))
    fleet = wait(session, lambda fleet: len(fleet.runs) == 2 and not fleet.reading)
    assert {run.name: run.last_step for run in fleet.runs} == {"a": 60, "b": 70}


def test_found_runs_are_listed_before_they_are_read(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_bytes(rows(1, 60))
    session = Monitor([str(tmp_path)], cwd=tmp_path)
    try:
        assert session.latest().reading
        wait_until(lambda: session._intake.is_scanned)
        session._publish()
        fleet = session.latest()
        assert sorted(run.name for run in fleet.runs) == ["a", "b", "c"]
        assert fleet.reading
        assert all(run.progress < 1.0 and run.files[0].path.endswith("metrics.jsonl") for run in fleet.runs)
        session.start()
        wait(session, lambda fleet: not fleet.reading)
        assert all(run.progress == 1.0 and run.last_step == 60 for run in session.latest().runs)
    finally:
        session.stop()


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end
        sleep(0.02)


def test_only_what_changed_is_made_anew(start: Start, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_bytes(rows(1, 60))
        old = modified_at(tmp_path / name / "metrics.jsonl") - 7200
        os.utime(tmp_path / name / "metrics.jsonl", (old, old))
    session = start(tmp_path)
    before = wait(session, lambda fleet: len(fleet.runs) == 2 and not fleet.reading)
    sleep(2 * module.HEARTBEAT_S + 0.3)
    assert session.latest() is before, "nothing happened, and yet there is another snapshot"
    append(tmp_path / "b" / "metrics.jsonl", rows(61, 61))
    after = wait(session, lambda fleet: named(fleet, "b").last_step == 61)
    assert named(after, "a") is named(before, "a")
    assert named(after, "b").series[LOSS].count == 61


def test_numbers_are_shown_as_they_come_and_findings_at_once(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 150))
    session = start(log)
    before = only(wait(session, reached(150)))
    append(log, rows(151, 151))
    run = only(wait(session, reached(151)))
    assert run.series[LOSS].count == 151
    append(log, rows(152, 154, loss=9.0))
    run = only(wait(session, reached(154)))
    assert [episode.kind for episode in run.episodes] == ["spike"] or len(run.episodes) > len(before.episodes)


def test_runs_of_several_steadily_growing_files_show_their_newest_values(start: Start, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    text = "".join(f" iteration {step:6d}/ 500 | lm loss: {2.0 + step % 3 / 100:.6E} |\n" for step in range(1, 60))
    (run / "train.log").write_text(text)
    (run / "metrics.jsonl").write_bytes(rows(1, 59))
    session = start(run)
    wait(session, lambda fleet: not fleet.reading and len(fleet.runs) == 1 and only(fleet).last_step == 59)
    append(run / "metrics.jsonl", rows(60, 60))
    wait(session, reached(60), seconds=5)
    append(run / "metrics.jsonl", rows(61, 61))
    wait(session, reached(61), seconds=5)


class Breaks(Detector):
    """A check that raises once it has read a step."""

    id = "test.breaks"
    name = "Breaks"
    signals = ("loss.train",)

    def update(self, frame: object) -> list[object]:  # type: ignore[override]
        raise ZeroDivisionError("on purpose")

    def result(self, view: object) -> object:  # type: ignore[override]
        raise AssertionError("a check that failed is not asked")


def test_a_check_that_raises_takes_nothing_else_with_it(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(files: RunFiles, clock: Clock, limits: Thresholds, settings: Settings, run: str) -> RunEngine:
        return RunEngine(files.name, files.target, clock=clock, detectors=(LossSpike, Breaks))

    monkeypatch.setattr(module, "engine_of", engine)
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 60))
    run = only(wait(start(tmp_path / "metrics.jsonl"), reached(60)))
    assert any("test.breaks failed: ZeroDivisionError" in problem for problem in run.problems)
    assert {check.id: check.verdict.value for check in run.checks}["loss.spike"] == "PASS"


class BreaksAt(RunEngine):
    """An engine that raises on what comes after 60 steps."""

    def feed(self, source: str, parsed: Parsed, restarted: bool = False) -> None:
        if self.steps is not None and self.steps.last >= 60:
            raise ZeroDivisionError("on\x1b[31m purpose")
        super().feed(source, parsed, restarted)


def test_an_engine_that_raises_says_so_and_leaves_the_other_runs_alone(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def engine(files: RunFiles, clock: Clock, limits: Thresholds, settings: Settings, run: str) -> RunEngine:
        if files.name == "b":
            return engine_of(files, clock, limits, settings, run)
        return BreaksAt(files.name, files.target, clock=clock)

    monkeypatch.setattr(module, "engine_of", engine)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_bytes(rows(1, 60))
    session = start(tmp_path)
    wait(session, lambda fleet: len(fleet.runs) == 2 and not fleet.reading)
    for name in "ab":
        append(tmp_path / name / "metrics.jsonl", rows(61, 65))
    fleet = wait(session, lambda fleet: bool(named(fleet, "a").problems) and named(fleet, "b").last_step == 65)
    broken, sound = named(fleet, "a"), named(fleet, "b")
    assert "internal error, this run is no longer judged (ZeroDivisionError: on" in broken.problems[0]
    assert "\x1b" not in broken.problems[0]
    assert broken.last_step == 60
    assert (broken.verdict, sound.verdict) == (Verdict.NO_DATA, Verdict.PASS), "what is no longer judged does not pass"
    assert "internal error" in broken.verdict_reason
    assert not sound.problems


def test_a_snapshot_that_cannot_be_made_leaves_the_last_one_standing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mute(RunEngine):
        def checks(self) -> object:  # type: ignore[override]
            if self.steps is not None and self.steps.last > 60:
                raise ZeroDivisionError("on purpose")
            return super().checks()

    monkeypatch.setattr(
        module, "engine_of", lambda files, clock, limits, settings, run: Mute(files.name, files.target, clock=clock)
    )
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 60))
    session = start(log)
    wait(session, reached(60))
    append(log, rows(61, 62))
    run = only(wait(session, lambda fleet: bool(only(fleet).problems)))
    assert "ZeroDivisionError: on purpose" in run.problems[0]
    assert run.last_step is not None
    assert run.series[LOSS].count == run.last_step
    assert run.checks
    assert run.verdict is Verdict.NO_DATA


def test_standard_input_is_watched_until_it_is_closed(start: Start, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    session = start("-", stdin_fd=reading)
    os.write(writing, rows(1, 60))
    assert only(wait(session, reached(60))).live
    os.write(writing, rows(61, 62)[:-1])
    os.close(writing)
    run = only(wait(session, lambda fleet: reached(62)(fleet) and not only(fleet).live))
    assert run.step_count == 62
    os.close(reading)


def test_acknowledging_is_shown(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 150) + rows(151, 153, loss=9.0) + rows(154, 200))
    session = start(log)
    run = only(wait(session, reached(200)))
    session.acknowledge(run.name, run.episodes[0].id)
    wait(session, lambda fleet: only(fleet).episodes[0].acknowledged)


def test_the_lines_around_a_place_can_be_asked_for(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 150))
    session = start(log)
    run = only(wait(session, reached(150)))
    session.request_log(run.name, run.files[0].path, 75)
    context = only(wait(session, lambda fleet: bool(only(fleet).log_context))).log_context
    assert any(line.line_no == 75 and '"step": 75' in line.text for line in context)


def test_settings_beside_a_log_hold_from_its_first_record_on(start: Start, tmp_path: Path) -> None:
    (tmp_path / "trainmon.toml").write_text("[thresholds]\nwindow = 40\n")
    old = modified_at(tmp_path / "trainmon.toml") - 1000
    os.utime(tmp_path / "trainmon.toml", (old, old))
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 60))
    run = only(wait(start(tmp_path), reached(60)))
    assert not [problem for problem in run.problems if "start trainmon again" in problem], run.problems


def test_stopping_does_not_wait_for_who_hangs(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(rows(1, 10))
    session = Monitor([str(tmp_path)], cwd=tmp_path)
    session.start()
    session.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "trainmon-engine" and thread.is_alive()]


def test_a_note_made_meanwhile_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainmon.monitor.logbook import Logbook, Remark

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("trainmon.monitor.logbook_watch.INTERVAL_S", 0.05)
    log = tmp_path / "run.jsonl"
    log.write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(1, 50)), encoding="utf-8")
    session = Monitor([str(log)], cwd=tmp_path)
    session.start()
    try:
        wait_until(lambda: bool(session.latest().runs) and session.latest().runs[0].last_step == 49)
        assert session.latest().runs[0].remarks == ()
        Logbook().add(Remark(path=str(log), time=1.0, text="lowered the LR", step=30.0))
        wait_until(lambda: bool(session.latest().runs[0].remarks))
        assert [each.text for each in session.latest().runs[0].remarks] == ["lowered the LR"]
    finally:
        session.stop()


def test_a_long_log_is_drawn_whole_before_it_is_read_and_judged_by_all_of_it(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 120_000))
    assert log.stat().st_size > LEAST_BYTES
    session = start(log, previews=True)
    first = only(wait(session, lambda fleet: bool(fleet.runs) and only(fleet).preview))
    assert (first.first_step, first.last_step) == (1, 120_000)
    assert first.progress == 0
    assert not first.episodes
    assert first.verdict is Verdict.NO_DATA
    session.attend(frozenset())  # the preview stands on the screen
    run = only(wait(session, reached(120_000)))
    assert not run.preview
    assert run.series[SignalKey("loss.train")].count == 120_000


def test_runs_that_nobody_looks_at_are_told_of_as_well(start: Start, tmp_path: Path) -> None:
    logs = [tmp_path / name / "metrics.jsonl" for name in ("seen", "unseen")]
    for log in logs:
        log.parent.mkdir()
        log.write_bytes(rows(1, 50))
    session = start(tmp_path)
    wait(session, lambda fleet: len(fleet.runs) == 2 and not fleet.reading)
    session.attend(frozenset({"seen"}))
    for log in logs:
        append(log, rows(51, 51))
    wait(session, lambda fleet: [run.last_step for run in fleet.runs] == [51, 51])


class _NextYear:
    """As seldom as can be."""

    interval_s = 1e9

    def note(self, now_s: float, *, is_busy: bool, records: int) -> float:
        del now_s, is_busy, records
        return self.interval_s


def test_that_a_history_is_read_is_told_at_once(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Pace", _NextYear)
    monkeypatch.setattr(Monitor, "start", _started_looked_over)
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(rows(1, 50))
    wait(start(log), reached(50))


_start = Monitor.start


def _started_looked_over(session: Monitor) -> None:
    """As a list does that has come up before anything is read."""
    session.attend(frozenset())
    _start(session)
