"""Settings of the directories above a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.tails.discover import discover
from trainmon.tails.inherited import LEVELS_UP, owner_of, settings_above


def folder_below(top: Path, levels: int) -> Path:
    place = top
    place.chmod(0o755)
    for level in range(levels):
        place = place / f"d{level}"
        place.mkdir(mode=0o755)
    return place


@pytest.mark.parametrize(("levels", "is_found"), [(0, True), (1, True), (LEVELS_UP, True), (LEVELS_UP + 1, False)])
def test_the_nearest_file_above_holds_within_reach(tmp_path: Path, levels: int, is_found: bool) -> None:
    (tmp_path / "trainmon.toml").write_text("")
    found = settings_above(folder_below(tmp_path, levels))
    assert found == (tmp_path.resolve() / "trainmon.toml" if is_found else None)


def test_a_directory_that_anyone_may_write_to_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "trainmon.toml").write_text("")
    below = folder_below(tmp_path, 1)
    tmp_path.chmod(0o777)
    assert settings_above(below) is None


def test_what_is_no_plain_file_says_nothing(tmp_path: Path) -> None:
    below = folder_below(tmp_path, 1)
    (tmp_path / "trainmon.toml").mkdir()
    assert settings_above(below) is None
    assert settings_above(tmp_path / "gone" / "deeper") is None


def test_a_path_of_another_machine_inherits_nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trainmon.toml").write_text("")
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert settings_above(Path("host:/data/run")) is None
    assert settings_above(Path()) == tmp_path.resolve() / "trainmon.toml"


def test_the_nearer_file_goes_before(tmp_path: Path) -> None:
    below = folder_below(tmp_path, 2)
    (tmp_path / "trainmon.toml").write_text("")
    (below.parent / "trainmon.toml").write_text("")
    (below / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    for targets in ([str(below / "log.jsonl")], [str(below)], [str(tmp_path)], [str(below / "*.jsonl")]):
        (run,) = discover(targets, tmp_path).runs
        settings = [file.path for file in run.files if file.role == "config"]
        assert [path.resolve() for path in settings] == [(below.parent / "trainmon.toml").resolve()]


def test_owners() -> None:
    assert owner_of(__file__)
    assert owner_of("host:/some/where") == ""
    assert owner_of("\0") == ""
