"""`trainmon replay`: the same bytes, at the pace of the log, whatever its times are like."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.test_cli import run
from trainmon.monitor.judge import find
from trainmon.monitor.replay import LONGEST_GAP_S, Plan, ReplayError, plan, play
from trainmon.tails.clock import SystemClock


class FastClock(SystemClock):
    """Time passes only by sleeping; what is on the disk by then can be looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: dict[float, int] = {}
        self.watched: Path | None = None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.watched is not None:
            self.at[round(self.now, 3)] = self.watched.read_bytes().count(b"\n")


def made(folder: Path, **options: float) -> Plan:
    found = find([str(folder / "logs")], folder)
    return plan(found.runs[0], folder / "out", SystemClock(), **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / "logs" / name
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def timed(seconds: list[int]) -> list[str]:
    return [
        f'{{"step": {step}, "loss": 2.5, "time": "2026-05-01T{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}"}}'
        for step, at in enumerate(seconds)
    ]


def test_the_copy_is_the_log(folder: Path) -> None:
    path = write(folder, "a.jsonl", timed(list(range(0, 1000, 10))))
    play(made(folder), 1e6, SystemClock(), threading.Event(), pytest.fail)
    assert (folder / "out" / "a.jsonl").read_bytes() == path.read_bytes()


def test_the_logs_own_times_pace_it(folder: Path) -> None:
    write(folder, "a.jsonl", timed([0, 10, 20, 30, 40]))
    clock = FastClock()
    clock.watched = folder / "out" / "a.jsonl"
    play(made(folder), 10.0, clock, threading.Event(), pytest.fail)
    assert {seconds: lines for seconds, lines in clock.at.items() if seconds in (0.4, 1.4, 2.4, 3.4)} == {
        0.4: 1,
        1.4: 2,
        2.4: 3,
        3.4: 4,
    }


def test_a_downtime_is_cut_short(folder: Path) -> None:
    write(folder, "a.jsonl", timed([0, 1, 2, 40_000, 40_001]))
    assert made(folder).lasts_s == 3 + LONGEST_GAP_S


def test_a_clock_set_back_stands_still(folder: Path) -> None:
    write(folder, "a.jsonl", timed([100, 110, 50, 60, 120]))
    (part,) = made(folder).parts
    assert part.due.tolist() == [0, 10, 10, 10, 20]


def test_without_times_a_record_a_second(folder: Path) -> None:
    write(folder, "a.jsonl", [f'{{"step": {step}, "loss": 2.5}}' for step in range(30)])
    planned = made(folder)
    assert (planned.is_timed, planned.lasts_s) == (False, 29.0)


def test_from_a_step_what_came_before_is_there(folder: Path) -> None:
    write(folder, "a.jsonl", timed(list(range(0, 300, 10))))
    (part,) = made(folder, from_step=20).parts
    assert part.due[:21].max() == 0.0
    assert np.diff(part.due[20:]).tolist() == [10.0] * 9


def test_files_of_one_run_keep_together(folder: Path) -> None:
    write(folder, "train.log", [f"step: {step} loss: 2.5 lr: 1e-3" for step in range(100)])
    write(folder, "metrics.jsonl", [f'{{"step": {step}, "loss": 2.5}}' for step in range(0, 100, 10)])
    planned = made(folder)
    ends = {part.source.name: part.due[-1] for part in planned.parts if part.due.size}
    assert ends == {"train.log": 99.0, "metrics.jsonl": 90.0}


def test_a_document_is_not_played(folder: Path) -> None:
    history = ", ".join(f'{{"step": {step}, "loss": 2.5}}' for step in range(20))
    write(folder, "trainer_state.json", [f'{{"global_step": 20, "log_history": [{history}]}}'])
    with pytest.raises(ReplayError, match="rewritten whole"):
        made(folder)


def test_a_file_that_cannot_be_written_is_said(folder: Path) -> None:
    write(folder, "a.jsonl", timed([0, 1]))
    (folder / "out").write_text("a file", encoding="utf-8")
    told: list[str] = []
    play(made(folder), 1.0, SystemClock(), threading.Event(), told.append)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("nope.log", "--out", "out"), "nope.log"),
        (("a.jsonl",), "no terminal"),
        (("a.jsonl", "--speed", "fast"), "100x"),
        (("a.jsonl", "--speed", "0"), "100x"),
        (("a.jsonl", "--out", "out", "--from", "1e9"), "last step is 4"),
        (("a.jsonl", "--out", "."), "empty directory"),
        (("empty.jsonl", "--out", "out"), "empty"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, words: tuple[str, ...], told: str) -> None:
    write(folder, "a.jsonl", timed([0, 1, 2, 3, 4]))
    write(folder, "empty.jsonl", [])
    done = run("replay", *words, cwd=folder / "logs")
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_out_ends_when_all_is_written(folder: Path) -> None:
    path = write(folder, "a.jsonl", timed([0, 1, 2]))
    done = run("replay", "logs/a.jsonl", "--out", "out", "--speed", "100x", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / os.path.basename(path)).read_bytes() == path.read_bytes()  # noqa: PTH119
