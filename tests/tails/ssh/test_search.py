"""What is found on another host is what is found here, and the commands read it the same way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import CLOCK, options_for
from trainmon.monitor.judge import judge
from trainmon.tails.discover import Discovery, discover
from trainmon.tails.intake import Intake, IntakeItem, read_all
from trainmon.tails.ssh import hosts
from trainmon.tails.ssh.options import SshOptions


def log(first: int, last: int) -> str:
    return "".join(f"step: {i} | loss: {3 - i / 1000:.4f} | lr: 0.0001\n" for i in range(first, last + 1))


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def there(far: Sshd, private: None) -> Iterator[Sshd]:
    hosts.configure(options_for(far))
    yield far
    hosts.configure(SshOptions())


TREE = {
    "a/train.log": log(1, 30),
    "a/metrics.jsonl": '{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.4}\n',
    "a/trainmon.toml": "",
    "b/checkpoint-10/trainer_state.json": json.dumps({"log_history": [{"step": 10, "loss": 2.0}]}),
    "b/checkpoint-20/trainer_state.json": json.dumps({"log_history": [{"step": 20, "loss": 1.9}]}),
    "c/rank_0.log": log(1, 5),
    "c/rank_1.log": log(1, 5),
    "d/README.txt": "a data set",
    "d/numbers.txt": "1 2 3",
    "e f/it's/slurm-12.out": log(1, 9),
    ".hidden/train.log": log(1, 3),
    "node_modules/x/train.log": log(1, 3),
    "late start.log": "x\n" * 40_000 + log(1, 9),
}


def shape(found: Discovery, root: Path, prefix: str) -> dict[str, set[tuple[str, str]]]:
    return {
        run.name.removeprefix(prefix): {
            (str(file.path).removeprefix(prefix + str(root)), file.role) for file in run.files
        }
        for run in found.runs
    }


def test_a_directory_is_searched_as_it_is_here(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, TREE)
    here = discover([str(tmp_path)], tmp_path)
    found = discover([f"{Sshd.HOST}:{tmp_path}"], tmp_path)
    assert found.problems == ()
    ours = [{(str(file.path), file.role) for file in run.files} for run in here.runs]
    theirs = [{(str(file.path).removeprefix(f"{Sshd.HOST}:"), file.role) for file in run.files} for run in found.runs]
    assert theirs == ours
    assert len(theirs) >= 5


def test_settings_above_hold_there_as_here(there: Sshd, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    put(tmp_path, {"trainmon.toml": "", "project/a/train.log": log(1, 30)})
    for target in ("project", "project/a/train.log", "project/a/*.log"):
        [here] = discover([str(tmp_path / target)], tmp_path).runs
        [run] = discover([f"{Sshd.HOST}:{tmp_path / target}"], tmp_path).runs
        assert [str(file.path).removeprefix(f"{Sshd.HOST}:") for file in run.files] == [
            str(file.path) for file in here.files
        ]
        assert [file.role for file in run.files] == ["stdout", "config"]


def test_patterns_names_and_what_is_not_there(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, TREE)
    (tmp_path / "empty").mkdir()
    host = Sshd.HOST
    found = discover([f"{host}:{tmp_path}/*/*.log"], tmp_path)
    assert found.problems == ()
    assert {file.path.name for run in found.runs for file in run.files} >= {"train.log", "rank_0.log", "rank_1.log"}
    bad = [f"{host}:{tmp_path}/*.nothing", f"{host}:{tmp_path}/empty", f"{host}:{tmp_path}/gone/"]
    found = discover(bad, tmp_path)
    assert found.runs == ()
    assert len(found.problems) == 3
    for target, problem in zip(bad, found.problems, strict=True):
        assert problem.startswith(target)
    [run] = discover([f"{host}:{tmp_path}/a/other.log"], tmp_path).runs
    assert {(file.path.name, file.role) for file in run.files} == {("other.log", "stdout"), ("trainmon.toml", "config")}


def test_a_pattern_runs_nothing(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, {"x/train.log": log(1, 3)})
    for trick in ("$(touch hacked)", "`touch hacked`", ";touch hacked;", "'\"", "\n touch hacked \n"):
        discover([f"{Sshd.HOST}:{tmp_path}/x/*{trick}*"], tmp_path)
    assert {path.name for path in tmp_path.rglob("*")} == {"x", "train.log"}
    assert not (Path.home() / "hacked").exists()


def test_judged_there_as_here(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, TREE)
    here = judge([str(tmp_path)], cwd=tmp_path)
    found = judge([f"{Sshd.HOST}:{tmp_path}"], cwd=tmp_path)
    assert found.problems == here.problems
    assert [(run.verdict, run.last_step) for run in found.runs] == [(run.verdict, run.last_step) for run in here.runs]
    assert [[(file.lines, file.records) for file in run.files] for run in found.runs] == [
        [(file.lines, file.records) for file in run.files] for run in here.runs
    ]


def test_a_host_that_is_down_stops_no_other(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, {"a/train.log": log(1, 30)})
    targets = [f"{Sshd.HOST}:{tmp_path}", "no-such-host.invalid:/x", str(tmp_path)]
    found = judge(targets, cwd=tmp_path)
    assert [run.last_step for run in found.runs] == [30, 30]
    assert [problem.partition(":")[0] for problem in found.problems] == ["no-such-host.invalid"]
    assert found.named_unjudged


def test_watched_beside_a_local_run(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, {"far/train.log": log(1, 30), "near/train.log": log(1, 20)})
    intake = Intake([f"{Sshd.HOST}:{tmp_path}/far", str(tmp_path / "near")], clock=CLOCK, cwd=tmp_path)
    try:
        records: dict[str, int] = {}
        lines: list[IntakeItem] = []

        def until(wanted: dict[str, int]) -> None:
            end = CLOCK.monotonic() + 40
            while records != wanted:
                for item in intake.get(0.2):
                    lines.append(item)
                    records[item.run_name] = records.get(item.run_name, 0) + item.update.parsed.records
                assert CLOCK.monotonic() < end, (records, intake.problems)

        until({"far": 30, "near": 20})
        assert {item.status.watched_by for item in lines if item.run_name == "far"} == {"ssh"}
        with (tmp_path / "far/train.log").open("a") as out:
            out.write(log(31, 33))
        until({"far": 33, "near": 20})
        got = intake.request_lines(f"{Sshd.HOST}:{tmp_path}/far/train.log", 12, 1).result(20)
        assert [line.line_no for line in got] == [11, 12, 13]
        put(tmp_path, {"far/sub/run2/train.log": log(1, 7)})
        intake.rescan()
        until({"far": 33, "near": 20, "run2/train.log": 7} if "run2/train.log" in _names(intake) else _later(intake))
    finally:
        intake.stop()


def test_when_a_log_there_was_written_to_is_known_before_it_is_taken(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, {"train.log": log(1, 30)})
    name = f"{Sshd.HOST}:{tmp_path}/train.log"
    os.utime(tmp_path / "train.log", (CLOCK.wall() - 500.0, CLOCK.wall() - 500.0))
    intake = Intake([name], clock=CLOCK, cwd=tmp_path)
    try:

        def age_s() -> float:
            written_at = intake.written_s(name)
            return float("nan") if written_at is None else CLOCK.monotonic() - written_at

        end = CLOCK.monotonic() + 40
        while not 490.0 < age_s() < 550.0:
            assert CLOCK.monotonic() < end, age_s()
            CLOCK.sleep(0.05)
        with (tmp_path / "train.log").open("a") as out:
            out.write(log(31, 33))
        os.utime(tmp_path / "train.log", (CLOCK.wall() + 900.0, CLOCK.wall() + 900.0))  # a file server's clock
        while not 0.0 <= age_s() < 10.0:  # nobody takes anything here
            assert CLOCK.monotonic() < end, age_s()
            CLOCK.sleep(0.05)
    finally:
        intake.stop()


def _names(intake: Intake) -> set[str]:
    return {run.name for run in intake.runs}


def _later(intake: Intake) -> dict[str, int]:
    end = CLOCK.monotonic() + 30
    while len(intake.runs) < 3 and CLOCK.monotonic() < end:
        CLOCK.sleep(0.05)
    [name] = _names(intake) - {"far", "near"}
    return {"far": 33, "near": 20, name: 7}


def test_a_document_is_read_again_when_it_changed(there: Sshd, tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    history = [{"step": step, "loss": 2.0} for step in range(1, 4)]
    path.write_text(json.dumps({"log_history": history}))
    intake = Intake([f"{Sshd.HOST}:{path}"], clock=CLOCK, cwd=tmp_path)
    try:
        records = 0
        end = CLOCK.monotonic() + 40
        while records < 4 and CLOCK.monotonic() < end:
            records += sum(item.update.parsed.records for item in intake.get(0.2))
            if records == 3 and len(history) == 3:
                history.append({"step": 4, "loss": 1.9})
                path.write_text(json.dumps({"log_history": history}))
        assert records == 4
    finally:
        intake.stop()


def test_read_once_to_the_end(there: Sshd, tmp_path: Path) -> None:
    put(tmp_path, {"a.log": log(1, 20000), "torn.log": "step: 1 | loss: 2.0 | lr: 0.1\nstep: 2 | loss: 1.9 | lr: 0.1"})
    for name, count in (("a.log", 20000), ("torn.log", 2)):
        [run] = discover([f"{Sshd.HOST}:{tmp_path}/{name}"], tmp_path).runs
        items = list(read_all(run, CLOCK))
        assert sum(item.update.parsed.records for item in items) == count
        assert items[-1].is_ended
        assert items[-1].status.read_bytes == (tmp_path / name).stat().st_size
