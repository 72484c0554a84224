"""Judgements that are kept: the same answers as a first reading, for exactly the state that was read."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmon.monitor import judge as judge_module
from trainmon.monitor import judged_cache
from trainmon.monitor.answers import AnsweringEngine
from trainmon.monitor.check import report
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.monitor.thresholds import Thresholds
from trainmon.monitor.watched import WatchedRun
from trainmon.tails import read_once


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRAINMON_CACHE", raising=False)
    monkeypatch.setattr(read_once, "_LARGE_BYTES", 1)


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit, NaN being like NaN."""
    if isinstance(one, SeriesView) or dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)


def without_time(run: RunSnapshot) -> RunSnapshot:
    """`run` without what the clock tells."""
    files = tuple(dataclasses.replace(file, newest_age_s=0.0) for file in run.files)
    return dataclasses.replace(run, age_s=0.0, files=files)


def is_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the runs that are read from now on."""
    names: list[str] = []
    read = judge_module._read_run

    def counted(files: Any, *rest: Any) -> WatchedRun:
        names.append(files.name)
        return read(files, *rest)

    monkeypatch.setattr(judge_module, "_read_run", counted)
    return names


def write(log: Path, losses: list[float | str], end: str = "") -> None:
    log.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"step": step, "loss": loss, "lr": 1e-3, "val_loss": loss}) for step, loss in enumerate(losses)]
    log.write_text("\n".join(lines) + "\n" + end)


LOSSES = st.lists(st.one_of(st.floats(0.5, 9.0), st.sampled_from(["NaN", 30.0, 0.0])), min_size=1, max_size=90)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    LOSSES,
    st.sampled_from(["", "not a record\n", "Traceback (most recent call last):\nRuntimeError: CUDA out of memory\n"]),
)
def test_a_judgement_that_was_kept_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, losses: list[float | str], end: str
) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    write(log, losses, end)
    os.utime(log, (1e9, 1e9))
    judged_cache.clear()
    with monkeypatch.context() as patch:
        names = is_read(patch)
        (first,) = judge([str(log)], cwd=tmp_path).runs
        (again,) = judge([str(log)], cwd=tmp_path).runs
    assert len(names) == 1
    assert same(without_time(first), without_time(again))
    assert report(first) == report(again)


def test_what_changes_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    write(log, [2.0, 1.9, 1.8])
    names = is_read(monkeypatch)

    def reads(**how: Any) -> int:
        before = len(names)
        judge([str(log)], cwd=tmp_path, **how)
        return len(names) - before

    assert (reads(), reads()) == (1, 0)
    assert (reads(limits=Thresholds({"spike.z": 9.0})), reads(limits=Thresholds({"spike.z": 9.0}))) == (1, 0)
    with log.open("a") as file:
        file.write('{"step": 3, "loss": 1.7}\n')
    assert (reads(), reads()) == (1, 0)
    (tmp_path / "run" / "trainmon.toml").write_text("[thresholds]\nwindow = 50\n")
    assert (reads(), reads()) == (1, 0)
    log.write_text(log.read_text().replace("1.9", "1.8"))  # as long as before
    assert (reads(), reads()) == (1, 0)
    monkeypatch.setattr(judged_cache, "_code", lambda: "newer")
    assert (reads(), reads()) == (1, 0)
    monkeypatch.setenv("TRAINMON_CACHE", "off")
    assert (reads(), reads()) == (1, 1)


def test_an_entry_is_private_and_a_damaged_one_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run" / "metrics.jsonl"
    write(log, [2.0 + 0.01 * (step % 7) for step in range(300)])
    os.utime(log, (1e9, 1e9))
    names = is_read(monkeypatch)
    (first,) = judge([str(log)], cwd=tmp_path).runs
    (entry,) = (tmp_path / "cache" / "trainmon" / "judged").iterdir()
    assert entry.stat().st_mode & 0o777 == 0o600
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    whole = entry.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 40, 1)):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        entry.write_bytes(damaged[: len(whole) - at % 3])
        names.clear()
        (run,) = judge([str(log)], cwd=tmp_path).runs
        assert names == [run.name], f"byte {at}: believed"
        assert same(without_time(run), without_time(first))


def test_the_kept_engine_answers_all_that_an_engine_is_asked() -> None:
    """Whoever adds a question to the engine has to keep its answer, or to say here why it needs none."""
    free = {"limit_memory", "tell_attempt", "acknowledge", "snooze", "marked", "events", "next_wake_s"}
    from_answers = {"episodes", "incidents"}  # by what `checks` and the kept episodes hold
    asked = {name for name, _ in inspect.getmembers(RunEngine) if not name.startswith("_")}
    own = {name for name in vars(AnsweringEngine) if not name.startswith("_")}
    assert asked - own == free | from_answers
