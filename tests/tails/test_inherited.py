"""Settings of the directories above a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.tails import inherited
from trainmon.tails.discover import discover
from trainmon.tails.inherited import LEVELS_UP, SettingsAbove, owner_of, settings_above


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


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    below = folder_below(tmp_path / "a", 2)
    (tmp_path / "a" / "trainmon.toml").write_text("")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to(below)
    (tmp_path / "b" / "circle").symlink_to("circle")
    above = SettingsAbove()
    expected = str(tmp_path.resolve() / "a" / "trainmon.toml")
    folders = ("b/link", "b/link/", "b/link/.", "b/../a/d0", "b/circle", "b/circle/x", "b/link\0")
    found = [above.nearest(f"{tmp_path}/{folder}") for folder in folders]
    assert found == [expected, expected, expected, expected, None, None, None]


def test_directories_above_many_runs_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in range(20):
        (tmp_path / "group" / f"r{run}").mkdir(parents=True)
        (tmp_path / "group" / f"r{run}" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    asked: list[str] = []
    ask = inherited._settings_in

    def counted(place: str) -> str | None:
        asked.append(place)
        return ask(place)

    monkeypatch.setattr(inherited, "_settings_in", counted)
    assert len(discover([str(tmp_path)], tmp_path).runs) == 20
    assert len(asked) == len(set(asked)) <= 20 + LEVELS_UP


def test_owners() -> None:
    assert owner_of(__file__)
    assert owner_of("host:/some/where") == ""
    assert owner_of("\0") == ""
