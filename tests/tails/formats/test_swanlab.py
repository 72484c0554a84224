"""SwanLab's backup file: what was logged, live and at its end, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tails.formats.binary_writers import WANDB_HEADER, wandb_file
from tests.tails.formats.structured import column, steps
from trainmon.tails.discover import discover
from trainmon.tails.formats.registry import detect
from trainmon.tails.formats.swanlab import SwanLabBackup
from trainmon.tails.record import NoteKind, Parsed

HEADER = b":SWL\xd6\xe1\x01"


def record(kind: str, **data: Any) -> bytes:
    return (json.dumps({"model_type": kind, "data": data}) + "\n").encode()


def scalar(step: int, key: str, value: Any) -> bytes:
    metric = {"index": step, "data": value, "create_time": f"2025-01-15T10:{step:02d}:00+00:00"}
    return record("Scalar", metric=metric, key=key, step=step, epoch=1)


def backup(*records: bytes) -> bytes:
    return HEADER + wandb_file(records)[len(WANDB_HEADER) :]


def read(data: bytes, cuts: tuple[int, ...] = ()) -> Parsed:
    reader, out, at = SwanLabBackup("backup.swanlab"), Parsed(), 0
    for end in (*cuts, len(data)):
        while at < end:
            parsed, consumed = reader.feed_frames(data[at:end], at)
            out.add(parsed)
            at += consumed
            if not consumed:
                break
    return out


WHOLE = backup(
    record("Header", backup_type="DEFAULT"),
    record("Experiment", name="swan-1"),
    record("Column", key="train/loss", cls="CUSTOM"),
    *(one for i in range(1, 9) for one in (scalar(i, "train/loss", 3 - i / 8), scalar(i, "train/lr", 1e-4))),
    record("Log", level="INFO", message="loss 99", epoch=1),
    scalar(9, "train/loss", "NaN"),
    record("Footer", success=True),
)


@pytest.mark.parametrize("cuts", [(), (40, 90, 91, 400)])
def test_scalars_are_values_at_their_steps(cuts: tuple[int, ...]) -> None:
    parsed = read(WHOLE, cuts)
    assert column(parsed, "train/loss")[:8] == [3 - i / 8 for i in range(1, 9)]
    assert column(parsed, "train/lr") == [1e-4] * 8
    assert sorted(set(steps(parsed))) == list(range(1, 10))
    assert parsed.unreadable == 0


def test_how_it_ended_is_told() -> None:
    assert [note.kind for note in read(WHOLE).notes] == [NoteKind.LAUNCH, NoteKind.FINISHED]
    failed = read(backup(scalar(1, "loss", 2.5), record("Footer", success=False)))
    assert [note.kind for note in failed.notes] == [NoteKind.ERROR]


def test_what_is_no_record_is_told_and_passed_over() -> None:
    parsed = read(
        backup(scalar(1, "loss", 2.5), b"\xff{[", b"[1, 2]\n", b'{"model_type": 3}\n', scalar(2, "loss", 2.25))
    )
    assert column(parsed, "loss") == [2.5, 2.25]
    assert parsed.unreadable == 1


def test_it_is_found_and_recognised(tmp_path: Path) -> None:
    folder = tmp_path / "swanlog" / "run-20250115_100000-a1b2"
    folder.mkdir(parents=True)
    (folder / "backup.swanlab").write_bytes(WHOLE)
    [run] = discover([str(tmp_path)], tmp_path).runs
    assert [file.path.name for file in run.files] == ["backup.swanlab"]
    assert isinstance(detect(WHOLE, "x"), SwanLabBackup)
