"""Files of trainmon's own: replaced whole or not at all, private, believed only when nobody else can have made them."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from trainmon.tails.own_files import NOWHERE, own_folder, read_private, write_output, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_private_is_so_whatever_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state"
    before = os.umask(0)
    try:
        write_private(path, b"one")
        write_private(path, b"two")
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode(path), mode(path.parent)) == (b"two", 0o600, 0o700)
    assert list(path.parent.iterdir()) == [path]
    assert read_private(path, 3) == b"two"


def test_what_cannot_be_put_in_its_place_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    (path / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_private(path, b"one")
    assert list(tmp_path.iterdir()) == [path]


def test_drafts_that_a_killed_program_left_are_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "state[1].json"
    begun, left, other = (tmp_path / name for name in (".state[1].json-a.tmp", ".state[1].json-b.tmp", ".else-c.tmp"))
    for draft in (begun, left, other):
        draft.write_bytes(b"half")
    for draft in (left, other):
        os.utime(draft, (1000.0, 1000.0))
    write_private(path, b"one")
    assert sorted(tmp_path.iterdir()) == sorted([path, begun, other]), "what may still be written stays"


@pytest.mark.requires("root")
def test_a_file_of_another_user_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_private(path, b"one")
    os.chown(path, 12345, -1)
    with pytest.raises(ValueError, match="another user"):
        read_private(path, 100)


def test_what_this_program_cannot_have_written_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_private(path, b"12345")
    with pytest.raises(ValueError, match="larger"):
        read_private(path, 4)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        read_private(link, 100)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="plain"):
        read_private(pipe, 100)
    with pytest.raises(OSError, match="directory"):
        read_private(tmp_path, 100)
    with pytest.raises(FileNotFoundError):
        read_private(tmp_path / "none", 100)


def test_an_output_has_the_mode_of_other_files_or_that_of_the_one_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    before = os.umask(0o027)
    try:
        write_output(path, b"one")
        assert mode(path) == 0o640
        path.chmod(0o604)
        write_output(path, b"two")
    finally:
        os.umask(before)
    assert (path.read_bytes(), mode(path)) == (b"two", 0o604)
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_goes_where_a_link_leads_and_the_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"made", b"replaced"):
        write_output(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_an_output_into_a_pipe_or_a_device_goes_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    came: list[bytes] = []
    reader = threading.Thread(target=lambda: came.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_output(pipe, b"through")
    reader.join(60)
    assert came == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_output(Path("/dev/null"), b"away")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("given", ["", ".", "relative/place"])
def test_a_folder_that_is_not_told_whole_is_none_of_the_current_directory(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own_folder("state") == tmp_path / ".local/state/trainmon"
    monkeypatch.setenv("HOME", given or ".")
    assert own_folder("state") == NOWHERE
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "there"))
    assert own_folder("state") == tmp_path / "there" / "trainmon"
