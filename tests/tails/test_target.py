from __future__ import annotations

import errno
from pathlib import Path

import pytest

from trainmon.tails.opening import explain
from trainmon.tails.target import TargetError, TargetKind, parse


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-", TargetKind.STDIN),
        ("runs/a.log", TargetKind.PATH),
        ("runs/", TargetKind.DIR),
        ("runs/*/metrics.jsonl", TargetKind.GLOB),
        ("host:/runs/a.log", TargetKind.SSH),
        ("me@host:~/runs/a.log", TargetKind.SSH),
        ("ssh://me@host:2222/runs/*.log", TargetKind.SSH),
        ("slurm:4711", TargetKind.SLURM),
        ("train_12:30:01.log", TargetKind.PATH),
        ("-x.log", TargetKind.PATH),
    ],
)
def test_kinds(tmp_path: Path, text: str, kind: TargetKind) -> None:
    assert parse(text, tmp_path).kind is kind


def test_what_lies_on_the_disk_wins(tmp_path: Path) -> None:
    for name in ("a[1].log", "host:", "slurm:1"):
        (tmp_path / name).touch()
    (tmp_path / "dir*").mkdir()
    assert parse("a[1].log", tmp_path).kind is TargetKind.PATH
    assert parse("slurm:1", tmp_path).kind is TargetKind.PATH
    assert parse("dir*", tmp_path).kind is TargetKind.DIR


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "ssh://", "ssh://host", "slurm:", "sftp://host/a", "s3://bucket/a"])
def test_what_means_nothing_is_one_clear_line(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("typed", "meant"), [("cluster:", "cluster:~/"), ("me@cluster:runs/a", "me@cluster:/runs/a")])
def test_a_path_as_scp_writes_it_is_told_how_it_is_written_here(typed: str, meant: str) -> None:
    assert meant in explain(f"/w/{typed}", FileNotFoundError(errno.ENOENT, "none"))
    assert "on the host" not in explain("/w/12:30", FileNotFoundError(errno.ENOENT, "none"))
