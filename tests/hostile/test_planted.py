"""Files that another user put where this user's own are kept: not read, not followed, said in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tails.test_parsed_cache import is_from_cache, read, write
from trainmon.tails import parsed_cache, read_once

pytestmark = pytest.mark.requires("root")
ROWS = b"".join(b'{"step": %d, "loss": 2.5, "grad_norm": 1.0, "note": "%s"}\n' % (n, b"x" * 200) for n in range(20_000))
OTHER = 12345


def check(home: Path, log: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TRAINMON_"))}
    return subprocess.run(
        [sys.executable, "-m", "trainmon", "check", str(log), "--json", *words],
        env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def given_away(path: Path) -> None:
    os.chown(path, OTHER, -1)


def writable_by_all(path: Path) -> None:
    path.chmod(0o777 if path.is_dir() else 0o666)


def a_link(path: Path) -> None:
    aside = path.with_name(path.name + ".aside")
    path.rename(aside)
    path.symlink_to(aside)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of which the cache has an entry."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TRAINMON_CACHE", raising=False)
    monkeypatch.setattr(read_once, "_LARGE_BYTES", 1)
    path = write(tmp_path / "log.jsonl", 500)
    read(path)
    assert is_from_cache(path, monkeypatch)
    return path


@pytest.mark.parametrize("change", [given_away, writable_by_all, a_link, a_pipe])
def test_an_entry_that_another_could_have_written_is_not_believed(
    log: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    [entry] = [path for path in parsed_cache.folder().iterdir() if path.is_file() and path.stat().st_size > 500]
    change(entry)
    assert not is_from_cache(log, monkeypatch)
    assert sum(item.update.parsed.records for item in read(log)) == 500


@pytest.mark.parametrize("change", [given_away, writable_by_all, a_link])
def test_nothing_is_kept_in_a_folder_that_is_not_private(log: Path, change: Callable[[Path], None]) -> None:
    place = parsed_cache.folder()
    for entry in place.iterdir():
        entry.unlink()
    change(place)
    assert sum(item.update.parsed.records for item in read(log)) == 500
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("change", [given_away, a_link])
def test_a_history_of_another_user_is_left_alone(tmp_path: Path, change: Callable[[Path], None]) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(ROWS[:20_000])
    assert check(tmp_path, log).returncode == 0
    [base] = [
        path for path in (tmp_path / ".local").rglob("*") if path.is_file() and b"SQLite" in path.read_bytes()[:16]
    ]
    change(base)
    before = base.read_bytes()
    made = check(tmp_path, log)
    assert made.returncode == 0
    assert "no history is kept" in made.stderr
    assert len(made.stderr.splitlines()) == 1
    assert base.read_bytes() == before


def test_a_pipe_in_the_place_of_the_history_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(ROWS[:20_000])
    place = tmp_path / ".local/share/trainmon/history.sqlite3"
    place.parent.mkdir(mode=0o700, parents=True)
    os.mkfifo(place)
    made = check(tmp_path, log)
    assert made.returncode == 0
    assert "no history is kept" in made.stderr
    assert len(made.stderr.splitlines()) == 1
    assert place.is_fifo()


def test_nothing_kept_can_be_read_or_written_by_others(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(ROWS)
    os.utime(log, (1e9, 1e9))
    old = os.umask(0)
    try:
        assert check(tmp_path, log).returncode == 0
    finally:
        os.umask(old)
    kept = [path for folder in (".cache", ".local") for path in (tmp_path / folder).rglob("*")]
    assert [path for path in kept if path.is_file()]
    assert [path for path in kept if path.is_file() and path.stat().st_mode & 0o077] == []
