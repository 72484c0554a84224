"""What was acknowledged in `watch` is told by `report`, wherever it was watched from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import BAD, run
from trainmon.monitor.judge import judge
from trainmon.tui.seen import with_seen
from trainmon.tui.state import State, StateFile


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "train.jsonl").write_text(BAD, encoding="utf-8")
    return tmp_path / "runs"


@pytest.mark.parametrize(
    ("watched_in", "target", "name", "is_seen"),
    [
        ("runs", ".", "a", True),
        ("runs", "a/train.jsonl", "train.jsonl", True),
        (".", "runs/*/train.jsonl", "a", True),
        ("runs", ".", "b", False),
        ("elsewhere", ".", "a", False),
    ],
)
def test_an_acknowledgement_is_found_by_the_log(
    runs: Path, tmp_path: Path, watched_in: str, target: str, name: str, is_seen: bool
) -> None:
    (found,) = judge(["a"], cwd=runs).runs
    assert found.name == "a"
    episode = found.episodes[0].id
    file = StateFile(tmp_path / watched_in, tmp_path / "state")
    assert file.write(State(acknowledged=((name, target, episode),))) == ""
    marked = with_seen(found, tmp_path / "state")
    assert [each.acknowledged for each in marked.episodes if each.id == episode] == [is_seen]


def test_the_report_tells_it(runs: Path, tmp_path: Path) -> None:
    episode = judge(["a"], cwd=runs).runs[0].episodes[0].id
    StateFile(runs, tmp_path / "trainmon" / "watch").write(State(acknowledged=(("a", ".", episode),)))
    made = run("report", "a", "--json", cwd=runs, XDG_STATE_HOME=str(tmp_path))
    assert json.loads(made.stdout)["acknowledged"] == [episode]
    assert "acknowledged" in run("report", "a", cwd=runs, XDG_STATE_HOME=str(tmp_path)).stdout


def test_a_damaged_state_is_passed_over(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "x.json").write_text("{", encoding="utf-8")
    (found,) = judge(["a"], cwd=runs).runs
    assert with_seen(found, tmp_path / "state") is found
