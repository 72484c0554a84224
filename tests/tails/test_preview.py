from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tails.formats.binary_writers import event, history, simple, version, wandb_file
from trainmon.tails.formats import registry
from trainmon.tails.preview import LEAST_BYTES, preview


def write(path: Path, count: int, line: str = '{{"step": {step}, "loss": {loss:.6f}, "note": "{pad}"}}\n') -> Path:
    with path.open("w") as file:
        for step in range(count):
            file.write(line.format(step=step, loss=2 + 8 * 0.9999**step, pad="x" * 60))
    return path


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("long") / "metrics.jsonl", 60_000)


def test_a_short_log_has_none(tmp_path: Path) -> None:
    assert preview(write(tmp_path / "short.jsonl", 100), "short", registry.detect) is None


def test_it_reaches_from_the_first_record_to_the_last_and_all_along(long_log: Path) -> None:
    assert long_log.stat().st_size >= LEAST_BYTES
    parsed = preview(long_log, str(long_log), registry.detect)
    assert parsed is not None
    steps = np.concatenate([block.steps for block in parsed.blocks])
    assert (steps[0], steps[-1]) == (0, 59_999)
    assert np.all(np.diff(steps) > 0)
    assert np.diff(steps).max() < 1000
    assert len(steps) < 6000


def test_what_it_shows_is_what_the_log_says(long_log: Path) -> None:
    parsed = preview(long_log, str(long_log), registry.detect)
    assert parsed is not None
    logged = {record["step"]: record["loss"] for record in map(json.loads, long_log.open())}
    for block in parsed.blocks:
        assert [logged[step] for step in block.steps.tolist()] == block.columns["loss"].tolist()


def test_a_table_keeps_its_head(tmp_path: Path) -> None:
    log = tmp_path / "metrics.csv"
    with log.open("w") as file:
        file.write("step,loss,lr\n")
        file.writelines(f"{step},{2 + 1 / (1 + step):.6f},0.000300000000\n" for step in range(200_000))
    parsed = preview(log, str(log), registry.detect)
    assert parsed is not None
    assert {"loss", "lr"} <= {key for block in parsed.blocks for key in block.columns}


def test_lines_longer_than_a_piece_are_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "wide.jsonl"
    with log.open("w") as file:
        for step in range(1000):
            file.write(json.dumps({"step": step, "loss": 2.0, **{f"layer{n}": n + 0.5 for n in range(600)}}) + "\n")
    parsed = preview(log, str(log), registry.detect)
    assert parsed is not None
    assert sum(len(block) for block in parsed.blocks) > 100


def test_what_is_no_curve_has_none(tmp_path: Path) -> None:
    noise = tmp_path / "noise.log"
    noise.write_bytes(b"starting the data loader\n" * 300_000)
    binary = tmp_path / "events.bin"
    binary.write_bytes(bytes(range(256)) * 40_000)
    one_line = tmp_path / "one.jsonl"
    one_line.write_bytes(b"{" + b" " * (5 << 20))
    for path in (noise, binary, one_line, tmp_path / "missing", tmp_path):
        assert preview(path, str(path), registry.detect) is None


def long_events(path: Path) -> Path:
    """An event file of over `LEAST_BYTES`, of two tags a step."""
    frames = [
        event(step, simple("loss", 2 + step / 100_000)) + event(step, simple("lr", 0.5)) for step in range(50_000)
    ]
    path.write_bytes(version() + b"".join(frames))
    return path


def long_wandb(path: Path) -> Path:
    """A W&B file of over `LEAST_BYTES`."""
    path.write_bytes(wandb_file([history(step, loss=2 + step / 100_000, note="x" * 200) for step in range(18_000)]))
    return path


@pytest.mark.parametrize(
    ("name", "write_file", "count"), [("run.tfevents", long_events, 50_000), ("run.wandb", long_wandb, 18_000)]
)
def test_event_stores_have_one_from_all_along_them(
    name: str, write_file: Callable[[Path], Path], count: int, tmp_path: Path
) -> None:
    log = write_file(tmp_path / name)
    assert log.stat().st_size >= LEAST_BYTES
    parsed = preview(log, str(log), registry.detect)
    assert parsed is not None
    assert not parsed.notes
    found = {
        step: loss
        for block in parsed.blocks
        for step, loss in zip(block.steps.tolist(), block.columns.get("loss", np.zeros(0)).tolist(), strict=False)
        if loss == loss
    }
    assert all(loss == pytest.approx(2 + step / 100_000, rel=1e-6) for step, loss in found.items())
    reached = np.array(sorted(found))
    assert reached[0] == 0
    assert reached[-1] > 0.999 * count
    assert np.diff(reached).max() < count / 30
