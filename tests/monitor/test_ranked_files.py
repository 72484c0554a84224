"""Runs of which each rank, or each start, writes files of its own: nothing of them is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.monitor.api import read
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import State
from trainmon.tails import read_once

_KEY_ERROR = "Traceback (most recent call last):\n  File \"t.py\", line 3, in <module>\nKeyError: 'a'\n"


def _log(first: int, last: int, *, rank: int = 0) -> str:
    return "".join(
        f"step {step} | loss {4 / step**0.1 + 0.001 * rank + 0.01 * (step * 7919 % 13) / 13:.4f} | mem {40 + rank}GiB\n"
        for step in range(first, last + 1)
    )


def _put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


@pytest.mark.parametrize(
    "name", ["worker-{}.log", "proc_{}.log", "task-{}.log", "local_rank{}.log", "gpu{}.log", "out.{}", "rank_{}/t.log"]
)
def test_each_rank_s_losses_and_memory_are_kept(tmp_path: Path, name: str) -> None:
    for rank in range(3):
        _put(tmp_path, name.format(rank), _log(1, 40, rank=rank))
    run = read(tmp_path)
    told = {(key.signal, dict(key.labels).get("rank")): view.count for key, view in run.snapshot.series.items()}
    for rank in "012":
        assert told["loss.rank", rank] == 40
        assert told["sys.rank_memory", rank] == 40


def test_sums_and_counts_of_each_rank_s_file_are_added_before_they_are_divided(tmp_path: Path) -> None:
    for rank in range(2):
        tokens = 100 * (rank + 1)
        lines = [f'{{"step": {n}, "loss_sum": {(2 + rank) * tokens}, "valid_tokens": {tokens}}}\n' for n in range(40)]
        _put(tmp_path, f"rank{rank}.jsonl", "".join(lines))
    losses = read(tmp_path).series("loss.train").values
    assert losses == pytest.approx([(2 * 100 + 3 * 200) / 300] * 40)


def test_the_memory_of_the_only_rank_that_tells_it_is_the_peak(tmp_path: Path) -> None:
    _put(tmp_path, "rank_0.log", _log(1, 40))
    _put(tmp_path, "rank_1.log", _log(1, 40, rank=1).replace("mem ", "memory_is "))
    peak = read(tmp_path).series("sys.peak_memory")
    assert peak.count == 40
    assert peak.values == pytest.approx([40 * 2**30] * 40)


def test_what_ended_a_start_before_did_not_end_the_run(tmp_path: Path) -> None:
    for rank in range(2):
        _put(tmp_path, f"id_x/attempt_0/{rank}/stdout.log", _log(1, 100, rank=rank))
        _put(tmp_path, f"id_x/attempt_0/{rank}/stderr.log", _KEY_ERROR if rank else "")
        _put(tmp_path, f"id_x/attempt_1/{rank}/stdout.log", _log(81, 150, rank=rank))
    run = read(tmp_path).snapshot
    assert run.attempts == ((1, 100), (81, 150))
    assert run.state is State.RUNNING
    assert (run.root_error, run.outlived_error) == ("KeyError: 'a'", "KeyError: 'a'")


def test_a_single_rank_s_loss_is_the_run_s_over_all_starts(tmp_path: Path) -> None:
    _put(tmp_path, "attempt_0/0/stdout.log", _log(1, 100))
    _put(tmp_path, "attempt_0/0/stderr.log", _KEY_ERROR)
    _put(tmp_path, "attempt_1/0/stdout.log", _log(81, 150))
    run = read(tmp_path).snapshot
    assert run.attempts == ((1, 100), (81, 150))
    assert {key.signal: view.count for key, view in run.series.items()}["loss.train"] == 170


def test_what_the_newest_start_says_last_ends_the_run(tmp_path: Path) -> None:
    _put(tmp_path, "attempt_0/0/stdout.log", _log(1, 100))
    _put(tmp_path, "attempt_1/0/stdout.log", _log(81, 150))
    _put(tmp_path, "attempt_1/0/stderr.log", _KEY_ERROR)
    assert read(tmp_path).snapshot.state is State.CRASHED


def test_a_run_that_is_kept_from_before_is_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRAINMON_CACHE", raising=False)
    monkeypatch.setattr(read_once, "_LARGE_BYTES", 1)
    _put(tmp_path, "run/attempt_0/0/stdout.log", _log(1, 100))
    _put(tmp_path, "run/attempt_0/0/stderr.log", _KEY_ERROR)
    _put(tmp_path, "run/attempt_1/0/stdout.log", _log(81, 150))
    first = judge([str(tmp_path / "run")], cwd=tmp_path).runs[0]
    assert any((tmp_path / "cache").rglob("judged/*"))
    assert State.CRASHED not in (first.state, judge([str(tmp_path / "run")], cwd=tmp_path).runs[0].state)
