"""Logs that were compressed when they were done, read as they are."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.tails.clocks import FakeClock
from tests.tails.formats import binary_writers as events
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails import parts
from trainmon.tails.discover import discover
from trainmon.tails.formats import registry
from trainmon.tails.packed import PackedFile, PackedTail

LOSS = SignalKey("loss.train")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}
STEPS = range(60)


def loss(step: int) -> float:
    return 3 - step / 100


LOGS = {
    "train.log": "".join(f"step {step} | loss {loss(step):.4f}\n" for step in STEPS).encode(),
    "metrics.jsonl": "".join(json.dumps({"step": step, "loss": loss(step)}) + "\n" for step in STEPS).encode(),
    "metrics.csv": ("step,loss\n" + "".join(f"{step},{loss(step)}\n" for step in STEPS)).encode(),
    "trainer_state.json": json.dumps({"log_history": [{"step": s, "loss": loss(s)} for s in STEPS]}).encode(),
    "events.out.tfevents.1.h": events.version()
    + b"".join(events.event(step, events.simple("loss", loss(step))) for step in STEPS),
}


@pytest.mark.parametrize("packing", PACKERS)
@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("target", [True, False])
def test_a_packed_log_says_what_the_plain_one_says(tmp_path: Path, name: str, packing: str, target: bool) -> None:
    (tmp_path / f"{name}.{packing}").write_bytes(PACKERS[packing](LOGS[name]))
    (run,) = judge([f"{name}.{packing}"] if target else [], cwd=tmp_path).runs
    assert run.series[LOSS].steps.tolist() == list(map(float, STEPS))
    assert run.files[0].problem == ""
    assert run.files[0].read_bytes == len(LOGS[name]) or name == "trainer_state.json"


@pytest.mark.parametrize("packing", PACKERS)
def test_several_members_are_one_log_in_whatever_pieces_it_is_read(tmp_path: Path, packing: str) -> None:
    text = LOGS["train.log"] * 50
    path = tmp_path / f"train.log.{packing}"
    path.write_bytes(PACKERS[packing](text[:1000]) + PACKERS[packing](text[1000:]))
    for budget in (7, 1000, 1 << 20):
        source, got = PackedFile(path), b""
        while (update := source.poll(budget)).more:
            assert (len(update.data) <= budget, update.offset) == (True, len(got))
            got += update.data
        assert got == text
        assert (source.is_open, source.size) == (False, len(text))
        assert b"".join(source.blocks(len(text) - 40)) == text[-40:]


@pytest.mark.parametrize("packing", PACKERS)
def test_what_is_torn_is_read_as_far_as_it_goes_and_said(tmp_path: Path, packing: str) -> None:
    words = "".join(
        f"step {step} | loss {loss(step % 60):.4f} | time {step * 7919 % 10007}\n" for step in range(40_000)
    )
    packed = PACKERS[packing](words.encode())
    (tmp_path / f"train.log.{packing}").write_bytes(packed[: len(packed) * 3 // 4])
    (run,) = judge([f"train.log.{packing}"], cwd=tmp_path).runs
    assert "ends in the midst of its packed data" in run.files[0].problem
    if packing != "xz":  # its blocks are larger than this
        assert run.step_count > 1000


@pytest.mark.parametrize("packing", PACKERS)
def test_what_is_not_packed_is_said_to_be_damaged(tmp_path: Path, packing: str) -> None:
    (tmp_path / f"train.log.{packing}").write_bytes(LOGS["train.log"])
    (run,) = judge([f"train.log.{packing}"], cwd=tmp_path).runs
    assert "its packed data are damaged" in run.files[0].problem


@pytest.mark.parametrize("packing", PACKERS)
def test_a_bomb_takes_bounded_room_and_ends(tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_UNPACKED_BYTES", 16 << 20)
    path = tmp_path / f"train.log.{packing}"
    path.write_bytes(PACKERS[packing](b"\0" * (48 << 20)))
    source, total = PackedFile(path), 0
    tracemalloc.start()
    while (update := source.poll(1 << 20)).more:
        total += len(update.data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total <= 16 << 20
    assert "unpacks to over" in source.problem
    assert peak < 24 << 20


def test_another_file_in_its_place_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(LOGS["train.log"]))
    tail = PackedTail(path, clock=FakeClock(), detect=registry.detect)
    rows = sum(len(block) for _ in range(4) for block in tail.poll().parsed.blocks)
    assert rows == len(STEPS)
    path.write_bytes(gzip.compress(LOGS["train.log"][:600] + b"step 99 | loss 1.0\n"))
    assert any(tail.poll().restarted for _ in range(3))


def test_a_packed_data_set_is_no_run(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"shard_{number}.jsonl.gz").write_bytes(gzip.compress(b'{"text": "some words", "id": 1}\n' * 20))
    assert not discover([], tmp_path).runs


def test_a_packed_log_beside_others_is_a_run_unless_it_is_a_part_of_one(tmp_path: Path) -> None:
    (tmp_path / "new.log").write_bytes(LOGS["train.log"])
    for name in ("old.log.gz", "new.log.gz", "new.log.1.gz"):
        (tmp_path / name).write_bytes(gzip.compress(LOGS["train.log"]))
    assert sorted(run.name for run in discover([], tmp_path).runs) == ["new.log", "old.log.gz"]
