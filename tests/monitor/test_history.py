"""What was judged before: kept, private, told again, and never in the way."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_cli import BAD, GOOD, run
from trainmon.monitor.history import History, HistoryError
from trainmon.monitor.judge import judge


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data")}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name, text in (("good", GOOD), ("bad", BAD), ("worse", BAD)):
        (tmp_path / "logs" / name).mkdir(parents=True)
        (tmp_path / "logs" / name / "metrics.jsonl").write_text(text, encoding="utf-8")
    return tmp_path / "logs"


def ranks(slow: int) -> str:
    """Eight ranks' step times; one computes half as long again from step 100 on."""
    lines = []
    for step in range(1, 400):
        values = {f"step_time/rank{rank}": 1.0 + 0.01 * ((step * 7 + rank * 3) % 5) for rank in range(8)}
        if step >= 100:
            values[f"step_time/rank{slow}"] *= 1.6
        lines.append(json.dumps({"step": step, "loss": 3 - step / 500, **values}))
    return "\n".join(lines) + "\n"


def test_check_is_remembered(logs: Path, home: dict[str, str]) -> None:
    run("check", "good", "bad", cwd=logs, **home)
    document = json.loads(run("history", "--json", cwd=logs, **home).stdout)
    assert {one["name"]: one["verdict"] for one in document["runs"]} == {"good": "PASS", "bad": "FAIL"}
    assert "bad" in run("history", cwd=logs, **home).stdout
    assert "good" not in run("history", "BAD", cwd=logs, **home).stdout


def test_a_run_seen_again_is_one_run_in_its_newest_state(logs: Path, home: dict[str, str]) -> None:
    run("check", "good", cwd=logs, **home)
    (logs / "good" / "metrics.jsonl").write_text(BAD, encoding="utf-8")
    run("check", "good", cwd=logs, **home)
    (only,) = json.loads(run("history", "--json", cwd=logs, **home).stdout)["runs"]
    assert only["verdict"] == "FAIL"
    assert only["first_seen"] < only["last_seen"]


def test_a_fault_that_comes_back_is_named(logs: Path, home: dict[str, str]) -> None:
    run("check", "bad", "worse", "good", cwd=logs, **home)
    again = json.loads(run("history", "--json", cwd=logs, **home).stdout)["recurrences"]
    nonfinite = next(each for each in again if each["check"] == "loss.nonfinite")
    assert sorted(nonfinite["runs"]) == ["bad", "worse"]
    assert "Comes back:" in run("history", cwd=logs, **home).stdout


def test_the_rank_that_is_slow_in_run_after_run_is_named(tmp_path: Path, home: dict[str, str]) -> None:
    for name, slow in (("a", 5), ("b", 5), ("c", 2)):
        (tmp_path / f"{name}.jsonl").write_text(ranks(slow), encoding="utf-8")
        run("check", f"{name}.jsonl", cwd=tmp_path, **home)
    again = json.loads(run("history", "--json", cwd=tmp_path, **home).stdout)["recurrences"]
    placed = [each for each in again if each["where"].get("rank") == "5"]
    assert placed, again
    assert sorted(placed[0]["runs"]) == ["a.jsonl", "b.jsonl"]


def broken(node: str, seed: int) -> str:
    """A run that dies of a collective; the launcher says on which node that began."""
    lines = [f"step: {n}  loss: {4 - n / 500 + (n * seed) % 7 / 100:.4f}  grad_norm: 0.5" for n in range(1, 200)]
    lines += [
        "[rank5]:[E ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL",
        "train.py FAILED",
        "Failures:",
        "[1]:",
        "  host      : follower-9",
        "  exitcode  : -15 (pid: 2)",
        "Root Cause (first observed failure):",
        "[0]:",
        f"  host      : {node}",
        "  rank      : 5 (local_rank: 5)",
        "  exitcode  : -6 (pid: 41)",
    ]
    return "\n".join(lines) + "\n"


def test_the_node_on_which_run_after_run_breaks_is_named(tmp_path: Path, home: dict[str, str]) -> None:
    for number, node in enumerate(("gpu-17", "gpu-17", "gpu-04"), 1):
        (tmp_path / f"run{number}").mkdir()
        (tmp_path / f"run{number}" / "train.log").write_text(broken(node, number), encoding="utf-8")
    run("check", "run1", "run2", "run3", "--no-slurm", cwd=tmp_path, **home)
    again = json.loads(run("history", "--json", cwd=tmp_path, **home).stdout)["recurrences"]
    at = {each["where"]["node"]: sorted(each["runs"]) for each in again if "node" in each["where"]}
    assert at == {"gpu-17": ["run1", "run2"]}
    assert "at node gpu-17" in run("history", cwd=tmp_path, **home).stdout


def test_layers_and_sources_that_come_back_are_named(tmp_path: Path, home: dict[str, str]) -> None:
    faults = "moe-8x160m/expert_collapse,llama-350m/bad_source@200"
    for seed in ("1", "2"):
        run("demo", "--out", f"r{seed}", "--seed", seed, "--runs", "3", "--faults", faults, cwd=tmp_path, **home)
    run("check", "r1", "r2", "--no-slurm", cwd=tmp_path, **home)
    told = run("history", cwd=tmp_path, **home).stdout.partition("Comes back:")[2]
    assert "at layer 2: imbalance, in 2 runs" in told
    assert "at source code: group shift, in 2 runs" in told


def test_headless_watching_is_remembered(logs: Path, home: dict[str, str]) -> None:
    run("watch", "bad", "--headless", "--until-idle", "0", cwd=logs, **home)
    assert "bad" in run("history", cwd=logs, **home).stdout


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_nothing_is_kept_when_that_is_wished(logs: Path, home: dict[str, str], tmp_path: Path, how: str) -> None:
    flags = ("--no-history",) if how == "flag" else ()
    run("check", "good", *flags, cwd=logs, **home, **({} if how == "flag" else {"TRAINMON_HISTORY": "off"}))
    assert not (tmp_path / "data").exists()


def test_it_is_private(logs: Path, home: dict[str, str], tmp_path: Path) -> None:
    run("check", "good", cwd=logs, **home)
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert {oct(path.stat().st_mode & 0o777) for path in kept} == {"0o600"}


@pytest.mark.parametrize("harm", ["garbage", "link", "directory", "newer"])
def test_a_file_that_cannot_be_used_is_said_and_left(
    logs: Path, home: dict[str, str], tmp_path: Path, harm: str
) -> None:
    path = tmp_path / "data" / "trainmon" / "history.sqlite3"
    path.parent.mkdir(parents=True)
    if harm == "garbage":
        path.write_bytes(b"not a database, and long enough to be looked at as one" * 100)
    elif harm == "link":
        (tmp_path / "other").write_bytes(b"")
        path.symlink_to(tmp_path / "other")
    elif harm == "directory":
        path.mkdir()
    else:
        base = sqlite3.connect(path)
        base.execute("PRAGMA user_version = 99")
        base.close()
    made = run("check", "good", cwd=logs, **home)
    assert made.returncode == 0
    assert "history.sqlite3" in made.stderr
    assert "no history is kept" in made.stderr
    asked = run("history", cwd=logs, **home)
    assert asked.returncode == 2
    assert asked.stderr.endswith("; the history cannot be read\n"), "it has no --no-history"
    if harm == "link":
        assert (tmp_path / "other").read_bytes() == b""


def test_two_at_once_lose_nothing(logs: Path, home: dict[str, str]) -> None:
    for number in range(6):
        (logs / f"run{number}").mkdir()
        (logs / f"run{number}" / "metrics.jsonl").write_text(GOOD, encoding="utf-8")
    command = [sys.executable, "-m", "trainmon", "check", "-q"]
    started = [
        subprocess.Popen([*command, f"run{number}"], cwd=logs, env={**os.environ, **home}) for number in range(6)
    ]
    assert [each.wait(timeout=120) for each in started] == [0] * 6
    found = json.loads(run("history", "--json", cwd=logs, **home).stdout)["runs"]
    assert len(found) == 6


def test_the_oldest_are_dropped(logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmon.monitor.history._MOST_RUNS", 2)
    book = History(tmp_path / "book")
    runs = judge(["good", "bad", "worse"], cwd=logs).runs
    for moment, one in enumerate(runs):
        book.record([one], float(moment))
    assert [each.name for each in book.runs()] == ["worse", "bad"]
    assert all("good" not in each.runs for each in book.recurrences(1))


def test_a_killed_writer_leaves_the_old_state(logs: Path, tmp_path: Path) -> None:
    book = History(tmp_path / "book")
    book.record(judge(["good"], cwd=logs).runs, 1.0)
    script = (
        "import os, sqlite3, sys\n"
        "base = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "base.execute('BEGIN IMMEDIATE'); base.execute('DELETE FROM run'); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(book.path)], check=False)
    assert [each.name for each in book.runs()] == ["good"]


def test_words_are_no_pattern(logs: Path, tmp_path: Path) -> None:
    book = History(tmp_path / "book")
    book.record(judge(["good"], cwd=logs).runs, 1.0)
    assert book.runs(words="%") == []
    assert book.runs(words="' OR 1=1 --") == []


def test_the_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "book").write_bytes(b"")
    with pytest.raises(HistoryError, match="book"):
        History(tmp_path / "book").runs()


def test_a_flipped_byte_is_said_and_never_believed(logs: Path, tmp_path: Path) -> None:
    """Anywhere in the file: what is told is what was kept, or left out, and then that is said."""
    book = History(tmp_path / "book")
    book.record(judge([str(logs)], cwd=logs).runs, 1000.0)
    kept, again, whole = book.runs(), book.recurrences(), book.path.read_bytes()
    faults = {run.place: run.episodes for run in kept}
    filled = [at for at in range(len(whole)) if whole[at]]  # most of a page is empty
    rng = random.Random(1)
    noticed = 0
    for _ in range(300):
        content = bytearray(whole)
        flipped = rng.sample(filled, rng.choice((1, 1, 3)))
        for at in flipped:
            content[at] ^= 1 << rng.randrange(8)
        book.path.write_bytes(content)
        try:
            told, told_again, problems = book.runs(), book.recurrences(), book.problems()
        except HistoryError:
            noticed += 1
            continue
        noticed += bool(problems)
        assert all(replace(run, episodes=faults[run.place]) in kept for run in told)
        assert all(run.episodes <= faults[run.place] for run in told)
        assert all(any(set(one.runs) <= set(other.runs) for other in again) for one in told_again)
        assert problems or (told, told_again) == (kept, again), [hex(at) for at in flipped]
    assert noticed > 100


def test_what_an_older_version_kept_is_kept(logs: Path, tmp_path: Path) -> None:
    book = History(tmp_path / "book")
    book.record(judge([str(logs)], cwd=logs).runs, 1000.0)
    kept = book.runs(), book.recurrences()
    base = sqlite3.connect(book.path)
    base.execute("ALTER TABLE run DROP COLUMN seal")
    base.execute("ALTER TABLE run DROP COLUMN faults")
    base.execute("ALTER TABLE episode DROP COLUMN seal")
    base.execute("PRAGMA user_version = 1")
    base.commit()
    base.close()
    assert (book.runs(), book.recurrences()) == kept
    assert book.problems() == []
