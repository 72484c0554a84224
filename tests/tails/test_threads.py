"""A thread whose own work raises says so and goes on: nothing that is watched stops being watched unseen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tails.test_intake import CLOCK, Taker, detect, rows, steps
from trainmon.monitor.logbook_watch import LogbookWatch
from trainmon.tails import intake as intake_module
from trainmon.tails import worker_top
from trainmon.tails.discover import discover
from trainmon.tails.formats.base import Format
from trainmon.tails.intake import Intake
from trainmon.tails.reader import Reader
from trainmon.tails.watch import Watcher


@pytest.fixture(autouse=True)
def _again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_top, "RETRY_S", 0.01)
    monkeypatch.setattr(intake_module, "RESCAN_S", 0.05)


def failing_once(real: Callable[..., object]) -> Callable[..., object]:
    """`real`, but its first call raises."""
    calls: list[None] = []

    def call(*args: object, **how: object) -> object:
        calls.append(None)
        if len(calls) == 1:
            raise RuntimeError("on\x1b]0;x\x07 purpose")
        return real(*args, **how)

    return call


def said(intake: Intake) -> str:
    lines = [line for line in intake.problems if "please report it" in line]
    assert all(line.isprintable() for line in lines)
    return " ".join(lines)


@pytest.mark.parametrize(("of", "name"), [(Watcher, "wait"), (Watcher, "polled")])
def test_a_reader_goes_on_and_reads_what_it_had_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: type, name: str
) -> None:
    for file in ("a.log", "b.log"):
        (tmp_path / file).write_text(rows(0, 3))
    monkeypatch.setattr(of, name, failing_once(getattr(of, name)))
    intake = Intake(discover(["a.log", "b.log"], tmp_path), clock=CLOCK, detect=detect)
    taker = Taker(intake)
    taker.until(lambda items: {"a.log", "b.log"} <= set(steps(items)))
    with (tmp_path / "a.log").open("a") as more:
        more.write(rows(3, 5))
    taker.until(lambda items: steps(items).get("a.log", [])[-2:] == [3, 4])
    assert "on purpose" in said(intake)
    intake.stop()


def test_looking_for_runs_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.log").write_text(rows(0, 3))
    heard: list[str] = []
    find = failing_once(discover)

    def looks(*args: object) -> object:
        heard.append(said(intake))
        return find(*args)

    monkeypatch.setattr(intake_module, "discover", looks)
    intake = Intake([str(tmp_path)], clock=CLOCK, detect=detect)
    Taker(intake).until(lambda items: steps(items).get("train.log") == [0, 1, 2])
    assert "on purpose" in heard[1]
    deadline = time.monotonic() + 30
    while said(intake) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert said(intake) == "", "what works again is no problem any more"
    intake.stop()


def test_standard_input_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    def breaks(_head: bytes, _source: str) -> Format | None:
        raise RuntimeError("on purpose")

    reading, writing = os.pipe()
    os.write(writing, b"step 1 loss 2.5\n" * 30)
    intake = Intake(["-"], clock=CLOCK, detect=breaks, stdin_fd=reading)
    items = Taker(intake).until(lambda items: items and items[-1].is_ended)
    assert "on purpose" in items[-1].status.problem
    intake.stop()
    for end in (reading, writing):
        os.close(end)


def test_a_reader_for_which_there_is_no_thread_is_started_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little memory, too many processes: what was found is read as soon as there is a thread."""
    (tmp_path / "train.log").write_text(rows(0, 3))
    start, refused = Reader.start, []

    def refuses_once(reader: Reader) -> None:
        if not refused:
            refused.append(reader)
            raise RuntimeError("can't start new thread")
        start(reader)

    monkeypatch.setattr(Reader, "start", refuses_once)
    intake = Intake([str(tmp_path)], clock=CLOCK, detect=detect)
    Taker(intake).until(lambda items: steps(items).get("train.log") == [0, 1, 2])
    assert refused
    intake.stop()


def test_looking_for_remarks_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = failing_once(LogbookWatch._looked)
    monkeypatch.setattr(LogbookWatch, "_looked", looks)
    watch = LogbookWatch(CLOCK, lambda _run: None)
    watch.start()
    end = CLOCK.monotonic() + 60
    while not (watch._stamp or watch.problem) and CLOCK.monotonic() < end:
        CLOCK.sleep(0.01)
    assert "on purpose" in watch.problem
    assert watch._thread.is_alive()
    watch.stop()
