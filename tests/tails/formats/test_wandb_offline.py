from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.binary_writers import (
    WANDB_HEADER,
    exit_record,
    history,
    old_history,
    run,
    stats,
    wandb_file,
)
from tests.tails.formats.structured import column, marks, said, steps
from trainmon.tails.formats.wandb_offline import WandbOffline
from trainmon.tails.record import NoteKind, Parsed, TimeKind


def read(data: bytes, cuts: list[int] | None = None) -> Parsed:
    reader = WandbOffline("run.wandb")
    out = Parsed()
    at = 0
    for end in (*sorted({cut for cut in cuts or () if cut < len(data)}), len(data)):
        while at < end:
            parsed, consumed = reader.feed_frames(data[at:end], at)
            out.add(parsed)
            at += consumed
            if not consumed:
                break
    return out


def records(count: int = 20, pad: int = 0) -> list[bytes]:
    return [
        run(max_steps=500, model={"n_layer": 4}, global_batch_size=64, grad_clip=1.0),
        *(history(i, **{"train/loss": 3 - i / 10, "note": "x" * pad, "_timestamp": 1.7e9 + i}) for i in range(count)),
        exit_record(0),
    ]


def test_history_config_and_exit() -> None:
    parsed = read(wandb_file(records()))
    assert column(parsed, "train/loss") == [3 - i / 10 for i in range(20)]
    assert steps(parsed) == list(map(float, range(20)))
    assert parsed.blocks[0].step_key == "_step"
    assert parsed.blocks[0].time_kind is TimeKind.ABSOLUTE
    assert {fact.key: fact.value for fact in parsed.facts} == {
        "total_steps": 500.0,
        "batch_size": 64.0,
        "clip_threshold": 1.0,
    }
    assert [(note.kind, note.step) for note in parsed.notes] == [(NoteKind.LAUNCH, None), (NoteKind.FINISHED, 19.0)]


def test_a_better_step_than_wandbs_own() -> None:
    parsed = read(wandb_file([history(i, trainer={"global_step": i * 50}, loss=2.5) for i in range(5)]))
    assert parsed.blocks[0].step_key == "trainer/global_step"
    assert steps(parsed) == [0.0, 50.0, 100.0, 150.0, 200.0]


def test_values_nested_old_and_odd() -> None:
    parsed = read(
        wandb_file(
            [
                old_history(_step=0, loss=math.nan, stats={"a": 1.5}, img={"_type": "image-file", "width": 5}, ok=True),
                old_history(_step=1, loss=math.inf, stats={"a": 2.5}),
                history(2, loss=None, stats={"a": 3.5}),
            ]
        )
    )
    assert marks(parsed, "loss") == ["NAN", "POS_INF", "NULL"]
    assert column(parsed, "stats/a") == [1.5, 2.5, 3.5]
    assert set(parsed.blocks[0].columns) == {"loss", "stats/a"}


def test_system_metrics_have_a_time_and_no_step() -> None:
    parsed = read(
        wandb_file([history(0, loss=1.5), stats(1_700_000_100, **{"gpu.0.memory": 55.5}), history(1, loss=1.25)])
    )
    assert column(parsed, "system.gpu.0.memory") == [55.5]
    assert steps(parsed) == [0.0, None, 1.0]


def test_records_over_block_bounds() -> None:
    parsed = read(wandb_file(records(40, pad=5000)))
    assert len(column(parsed, "train/loss")) == 40
    assert parsed.unreadable == 0


@pytest.mark.parametrize("torn", [1, 6, 8, 30])
def test_torn_end_and_missing_exit(torn: int) -> None:
    whole = wandb_file(records()[:-1])
    data = whole + wandb_file([history(99, loss=1.0, note="y" * 50)])[len(WANDB_HEADER) :][:torn]
    reader = WandbOffline("run")
    parsed, consumed = reader.feed_frames(data, 0)
    assert consumed == len(whole)
    assert len(steps(parsed)) == 20
    assert parsed.unreadable == 0
    assert [note.kind for note in parsed.notes] == [NoteKind.LAUNCH]


def test_damage_costs_the_rest_of_its_block_only() -> None:
    data = bytearray(wandb_file(records(60, pad=2000)))
    data[20_000] ^= 0xFF
    parsed = read(bytes(data))
    assert parsed.unreadable == 1
    assert 35 < len(steps(parsed)) < 60
    assert steps(parsed)[-1] == 59.0


def test_failed_exit_and_header_only() -> None:
    assert [note.kind for note in read(wandb_file([exit_record(1)])).notes] == [NoteKind.ERROR]
    assert read(WANDB_HEADER).records == 0
    assert WandbOffline.sniff(WANDB_HEADER) > 0.9
    assert WandbOffline.sniff(b"W&B") == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.sampled_from([0, 900, 3000]), st.lists(st.integers(0, 100_000), max_size=6))
def test_any_cuts_say_the_same(count: int, pad: int, cuts: list[int]) -> None:
    data = wandb_file(records(count, pad))
    assert said(read(data, cuts)) == said(read(data))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_never_raise(data: bytes, framed: bool) -> None:
    read(wandb_file([data]) if framed else WANDB_HEADER + data)
