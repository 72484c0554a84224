"""Runs judged in several processes: the same snapshots in the same order; one that dies costs time only."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from trainmon.monitor import workers
from trainmon.monitor.document import check_document, dumps
from trainmon.monitor.judge import Judgement, judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.discover import RunFile, RunFiles


class StillClock:
    """Stands still, in this process and in others."""

    def wall(self) -> float:
        return 2e9

    def monotonic(self) -> float:
        return 1000.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def write(folder: Path, runs: int) -> None:
    for run in range(runs):
        (folder / f"run{run}").mkdir()
        records = [{"step": step, "loss": 5 / (1 + step / 99) if step < 300 * run else 9.0} for step in range(600)]
        (folder / f"run{run}" / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / "empty.log").write_text("")


def document(found: Judgement) -> str:
    return dumps(check_document(found.runs, 0, found.problems))


def test_the_same_in_any_number_of_processes(tmp_path: Path) -> None:
    write(tmp_path, 4)
    one = judge([str(tmp_path)], cwd=tmp_path, clock=StillClock(), processes=1)
    assert len(one.runs) >= 4
    assert document(judge([str(tmp_path)], cwd=tmp_path, clock=StillClock(), processes=3)) == document(one)


def _dies_elsewhere(files: RunFiles, *, home: int, deadly: str) -> RunSnapshot:
    if os.getpid() != home and files.name == deadly:
        os._exit(9)
    return (files.name, os.getpid() == home)  # type: ignore[return-value] - a stand-in that is passed on as it is


def test_a_worker_that_dies_is_said_and_its_runs_are_judged_here(tmp_path: Path) -> None:
    runs = [RunFiles(f"run{index}", "", (RunFile(tmp_path / f"{index}.log", "stdout"),)) for index in range(5)]
    problems: list[str] = []
    work = partial(_dies_elsewhere, home=os.getpid(), deadly="run2")
    found = list(workers.judged(runs, work, 2, problems))
    assert [name for name, _ in found] == [run.name for run in runs]  # type: ignore[misc]
    assert dict(found)["run2"] is True  # type: ignore[call-overload]
    assert len(problems) == 1
    assert "died" in problems[0]
    calm: list[str] = []
    assert [here for _, here in workers.judged(runs, partial(work, deadly=""), 2, calm)] == [False] * 5  # type: ignore[misc]
    assert calm == []


def test_few_bytes_are_read_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [tmp_path / f"{index}.log" for index in range(3)]
    for log in logs:
        log.write_bytes(b"x" * 1000)
    runs = [RunFiles(log.stem, "", (RunFile(log, "stdout"),)) for log in logs]
    monkeypatch.setattr(workers, "_cores", lambda: 2)
    assert workers.processes_for(runs, None) == 1
    assert workers.processes_for(runs, 8) == 3
    assert workers.processes_for(runs * 100, None) == 2  # each run has a cost of its own
    monkeypatch.setattr(workers, "PAYS_BYTES", 2000)
    assert workers.processes_for(runs, None) == 2
    assert workers.processes_for(runs[:1], None) == 1
    stdin = RunFiles("-", "-", (RunFile(Path("-"), "stdout"),))
    assert workers.processes_for([stdin, *runs[:1]], None) == 1
