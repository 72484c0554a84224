from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.binary_writers import (
    WANDB_HEADER,
    bytes_field,
    exit_record,
    history,
    number_field,
    old_history,
    run,
    stats,
    wandb_file,
)
from tests.tails.formats.structured import column, marks, rows_of, said, steps
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


def test_a_text_that_says_eval_is_not_about_all_that_was_logged_at_its_step() -> None:
    """W&B joins the calls of one step into one record."""
    parsed = read(wandb_file([history(i, **{"train/loss": 3.0, "phase": "eval", "eval/loss": 2.5}) for i in range(9)]))
    assert column(parsed, "train/loss") == [3.0] * 9
    assert {key for block in parsed.blocks for key in block.columns} == {"train/loss", "eval/loss"}


def test_a_store_cut_off_at_any_byte_is_the_beginning_of_the_whole() -> None:
    data = wandb_file(records(6))
    whole = rows_of(read(data))
    for cut in range(len(data)):
        parsed = read(data[:cut])
        assert parsed.unreadable == 0
        assert rows_of(parsed) == whole[: len(rows_of(parsed))]


ODD_RECORDS = {
    "long values": history(5, loss=1.5, text="y" * 400, list=[0.5] * 60),
    "keys that need escapes": history(5, **{'a"b\\c\n': 1.5, "späť": 2.5, "loss": 1.0}),
    "nested media": history(5, loss=1.5, tables={"t": {"_type": "table-file", "nrows": 5}, "kept": 2.5}),
    "nested twice": history(5, loss=1.5, a={"b": {"c": 2.5}}),
    "a key of its own older form": old_history(_step=5, loss=1.5, ok=True, note="x", none=None),
    "a newline inside a value": bytes_field(2, bytes_field(1, bytes_field(2, b"x") + bytes_field(16, b"[1,\n2]"))),
    "a value that is no JSON": bytes_field(2, bytes_field(1, bytes_field(2, b"x") + bytes_field(16, b"}{"))),
    "a value of no bytes": bytes_field(2, bytes_field(1, bytes_field(2, b"x") + bytes_field(16, b""))),
    "no items": bytes_field(2, bytes_field(2, number_field(1, 5))),
    "an unknown field": bytes_field(2, number_field(9, 5) + bytes_field(2, number_field(1, 5))),
    "a length beyond the end": bytes_field(2, bytes([0x0A, 0x20, 0x12, 0x01])),
}


@pytest.mark.parametrize("kind", ODD_RECORDS)
def test_records_laid_out_otherwise_do_not_disturb_those_around_them(kind: str) -> None:
    around = [history(i, loss=3 - i / 10, _timestamp=1.7e9 + i) for i in range(9)]
    data = wandb_file([*around[:5], ODD_RECORDS[kind], *around[6:]])
    parsed = read(data)
    assert [row[0] for row in rows_of(parsed) if row[0] != 5.0 and row[0] is not None] == [0, 1, 2, 3, 4, 6, 7, 8]
    assert said(parsed) == said(read(data, list(range(0, len(data), 40))))


def test_nested_and_odd_values_by_their_keys() -> None:
    parsed = read(wandb_file([ODD_RECORDS["nested media"], ODD_RECORDS["nested twice"]]))
    assert column(parsed, "tables/kept") == [2.5]
    assert column(parsed, "a/b/c") == [2.5]
    escaped = read(wandb_file([ODD_RECORDS["keys that need escapes"]]))
    assert {key for block in escaped.blocks for key in block.columns} == {'a"b\\c\n', "späť", "loss"}
