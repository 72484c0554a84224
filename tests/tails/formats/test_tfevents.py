from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.binary_writers import event, frame, simple, tensor, version
from tests.tails.formats.structured import column, marks, rows_of, said, steps
from trainmon.tails.formats.tfevents import TfEvents
from trainmon.tails.record import NoteKind, Parsed, TimeKind


def read(data: bytes, cuts: list[int] | None = None) -> Parsed:
    """Gives `data` in pieces as the follower does: again what was not consumed, once more when all is there."""
    reader = TfEvents("events")
    out = Parsed()
    at = 0
    for end in (*sorted({cut for cut in cuts or () if cut < len(data)}), len(data), len(data)):
        while at < end:
            parsed, consumed = reader.feed_frames(data[at:end], at)
            out.add(parsed)
            at += consumed
            if not consumed:
                break
    return out


def run_of(count: int, first: int = 0) -> bytes:
    return version() + b"".join(
        event(step, simple("loss", 3 - step / 100)) + event(step, simple("lr", 0.25))
        for step in range(first, first + count)
    )


def test_tags_at_one_step_make_one_row() -> None:
    parsed = read(run_of(5))
    assert steps(parsed) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert column(parsed, "loss") == [float(np.float32(3 - step / 100)) for step in range(5)]
    assert column(parsed, "lr") == [0.25] * 5
    assert parsed.blocks[0].time_kind is TimeKind.ABSOLUTE
    assert rows_of(parsed)[1][1] == 1.7e9 + 1
    assert rows_of(parsed)[0][2] == len(version())


def test_newest_row_waits_for_the_next_step_or_quiet() -> None:
    reader = TfEvents("events")
    data = run_of(2)
    parsed, consumed = reader.feed_frames(data, 0)
    assert steps(parsed) == [0.0]
    again, nothing = reader.feed_frames(data[consumed:], consumed)
    assert (again.records, nothing) == (0, 0)
    quiet, rest = reader.feed_frames(data[consumed:], consumed)
    assert steps(quiet) == [1.0]
    assert consumed + rest == len(data)


@pytest.mark.parametrize("kind", ["content", "double", "int64"])
def test_scalars_as_tensors(kind: str) -> None:
    parsed = read(version() + b"".join(event(step, tensor("loss", 2.0 + step, kind)) for step in range(1, 6)))
    assert column(parsed, "loss") == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_tensors_of_several_values_are_no_scalars() -> None:
    data = version() + event(1, tensor("hist", 2.0, "pair"), simple("loss", 1.5)) + event(2, simple("loss", 1.25))
    assert {key for block in read(data).blocks for key in block.columns} == {"loss"}


def test_several_values_in_one_event_and_a_tag_twice_at_one_step() -> None:
    data = version() + event(3, simple("a", 1), simple("b", 2)) + event(3, simple("a", 5)) + event(4, simple("a", 6))
    assert [(row[0], sorted(row[4])) for row in rows_of(read(data))] == [(3.0, ["a", "b"]), (3.0, ["a"]), (4.0, ["a"])]


def test_non_finite_values_are_marked() -> None:
    values = [1.0, math.nan, math.inf, -math.inf]
    parsed = read(version() + b"".join(event(step, simple("loss", value)) for step, value in enumerate(values)))
    assert marks(parsed, "loss") == ["NUMBER", "SAID_NAN", "POS_INF", "NEG_INF"]  # no event is written for a gap


def test_torn_end_is_not_consumed() -> None:
    data = run_of(3)
    whole = read(data)
    for cut in (1, 5, 11, 13, 20):
        reader = TfEvents("events")
        out = Parsed()
        torn = data + event(9, simple("loss", 1.0))[:cut]
        at = 0
        for _ in range(4):
            parsed, consumed = reader.feed_frames(torn[at:], at)
            out.add(parsed)
            at += consumed
        assert at == len(data)
        assert said(out)["rows"] == said(whole)["rows"]
        assert out.unreadable == 0


def test_damaged_data_is_passed_over() -> None:
    frames = [version(), *(event(step, simple("loss", step)) for step in range(6))]
    broken = bytearray(frames[3])
    broken[-6] ^= 0xFF
    parsed = read(b"".join((*frames[:3], bytes(broken), *frames[4:])))
    assert steps(parsed) == [0.0, 1.0, 3.0, 4.0, 5.0]
    assert parsed.unreadable == 1
    assert [note.kind for note in parsed.notes] == [NoteKind.UNREADABLE]


@pytest.mark.parametrize(
    "junk", [b"\x00" * 40, b"junk that is no frame at all....", struct.pack("<Q", 1 << 40) + b"x" * 30]
)
def test_damaged_framing_is_passed_over(junk: bytes) -> None:
    frames = [version(), *(event(step, simple("loss", step)) for step in range(6))]
    parsed = read(b"".join((*frames[:3], junk, *frames[3:])))
    assert steps(parsed) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert parsed.unreadable == 1


def test_frames_that_hold_no_event() -> None:
    parsed = read(version() + frame(b"\xff\xff\xff\xff") + event(1, simple("loss", 2.0)) + event(2))
    assert steps(parsed) == [1.0]
    assert parsed.unreadable == 1


def test_large_and_negative_steps() -> None:
    data = version() + b"".join(event(step, simple("loss", 1.0)) for step in (-1, 10**12, 300))
    assert steps(read(data)) == [-1.0, 1e12, 300.0]


def test_sniff() -> None:
    assert TfEvents.sniff(version()) > 0.9
    assert all(TfEvents.sniff(sample) > 0.9 for sample in TfEvents.samples)
    assert TfEvents.sniff(b"step,loss\n1,2\n") == 0.0
    assert TfEvents.sniff(b"") == 0.0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["loss", "lr", "t"]), st.floats(width=32)), max_size=15),
    st.lists(st.integers(0, 1200), max_size=6),
    st.sampled_from([b"", b"\x00" * 30, b"\x18junk"]),
)
def test_any_cuts_say_the_same(values: list[tuple[int, str, float]], cuts: list[int], junk: bytes) -> None:
    frames = [event(step, simple(tag, value)) for step, tag, value in values]
    data = version() + b"".join(frames[:4]) + junk + b"".join(frames[4:])
    assert said(read(data, cuts)) == said(read(data))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_never_raise(data: bytes, framed: bool) -> None:
    read(version() + (frame(data) if framed else data))
    TfEvents.sniff(data)


def ends_of(data: bytes) -> list[int]:
    """Where each frame ends."""
    ends, at = [], 0
    while at < len(data):
        at += 16 + struct.unpack_from("<Q", data, at)[0]
        ends.append(at)
    return ends


ROW_KINDS = {
    "scalars": lambda step: (
        event(step, simple("loss", 3 - step / 1000), wall=1.7e9 + step / 7) + event(step, simple("lr", 0.25 * step))
    ),
    "tensors": lambda step: event(step, tensor("loss", 1 / (1 + step))) + event(step, tensor("acc", step, "double")),
    "together": lambda step: event(step, simple("loss", step), simple("lr", 0.5), tensor("m", 0.1 * step)),
    "other axis": lambda step: (
        event(step, simple("lm loss", step), wall=1.7e9) + event(step * 64, simple("lm loss vs samples", step))
    ),
    "pictures": lambda step: (
        event(step, simple("loss", step)) + (event(step, tensor("hist", 1, "pair")) if step % 90 == 0 else b"")
    ),
    "odd values": lambda step: event(step, simple("loss", math.nan if step % 50 == 7 else step / 3)),
}


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_stretches_of_like_rows_say_what_their_events_say(kind: str) -> None:
    data = version() + b"".join(map(ROW_KINDS[kind], range(400)))  # from 128 on a step has two bytes
    by_stretches, by_events = read(data), read(data, ends_of(data))
    assert said(by_stretches) == said(by_events)
    assert steps(by_stretches) == list(map(float, range(400)))


@pytest.mark.parametrize("at", range(4000, 4110, 10))
def test_a_flipped_bit_in_a_stretch_costs_one_event(at: int) -> None:
    data = bytearray(run_of(300))
    data[at] ^= 0x10
    parsed, whole = read(bytes(data)), [float(np.float32(3 - step / 100)) for step in range(300)]
    rows = {row[0]: row[4] for row in rows_of(parsed)}
    assert parsed.unreadable == 1
    assert len(rows) >= 299
    assert all(float(cells["loss"][0]) == whole[int(step or 0)] for step, cells in rows.items() if "loss" in cells)


def test_a_store_cut_off_at_any_byte_is_the_beginning_of_the_whole() -> None:
    data = run_of(6) + event(41, tensor("loss", 1.0), tensor("lr", 0.5)) + event(42, simple("loss", 2.0))
    whole = rows_of(read(data))
    for cut in range(len(data)):
        parsed = read(data[:cut])
        rows = rows_of(parsed)
        assert parsed.unreadable == 0
        assert rows[:-1] == whole[: max(0, len(rows) - 1)]
        assert not rows or rows[-1][4].items() <= whole[len(rows) - 1][4].items()


@pytest.mark.parametrize("blank", [" ", "_"])  # tensorboardX writes the latter
def test_a_tag_over_another_axis_is_the_same_values_again(blank: str) -> None:
    """As Megatron writes them: the iteration and the number of samples in turn."""
    tags = [f"lm{blank}loss", f"lm{blank}loss{blank}vs{blank}samples", "grad-norm", f"grad-norm{blank}vs{blank}samples"]
    data = version() + b"".join(
        event(step, simple(tags[0], 3.0))
        + event(step * 512, simple(tags[1], 3.0))
        + event(step, simple(tags[2], 0.5))
        + event(step * 512, simple(tags[3], 0.5))
        for step in range(1, 100)
    )
    parsed = read(data)
    assert steps(parsed) == list(map(float, range(1, 100)))
    assert {key for block in parsed.blocks for key in block.columns} == {tags[0], tags[2]}
    alone = read(version() + event(1, simple("left vs right", 2.0)))
    assert column(alone, "left vs right") == [2.0]


def test_a_reward_over_another_axis_does_not_take_the_steps_of_the_loss() -> None:
    data = version() + b"".join(
        event(step, simple("train/loss", 3.0)) + event(step * 1024, simple("reward_by_tokens", 0.5))
        for step in range(10, 610, 10)
    )
    rows = [row[0] for row in rows_of(read(data)) if "train/loss" in row[4]]
    assert rows == list(map(float, range(10, 610, 10)))


def test_tags_on_a_counter_of_their_own_have_no_step() -> None:
    data = version() + b"".join(
        event(step, simple("train/loss", 3.0))
        + (event(step // 100, simple("epoch_time", 9.0)) if step % 100 == 0 else b"")
        for step in range(1, 301)
    )
    rows = rows_of(read(data))
    assert [row[0] for row in rows if "train/loss" in row[4]] == list(map(float, range(1, 301)))
    assert [row[0] for row in rows if "epoch_time" in row[4]] == [None, None, None]


def test_a_counter_that_ran_ahead_gives_way_to_the_training_rows() -> None:
    data = version() + b"".join(
        event(step, simple("train/loss", 3.0)) + event(step * 1000, simple("buffer/fill", 9.0)) for step in range(1, 50)
    )
    rows = rows_of(read(data))
    assert [row[0] for row in rows if "train/loss" in row[4]] == list(map(float, range(1, 50)))
    assert [row[0] for row in rows if "buffer/fill" in row[4]] == [1000.0] + [None] * 48


def test_a_tag_that_goes_back_begins_anew() -> None:
    data = run_of(20) + run_of(20, first=5)[len(version()) :]
    assert steps(read(data)) == [*map(float, range(20)), *map(float, range(5, 25))]


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(ROW_KINDS)), st.integers(1, 60)), min_size=1, max_size=3),
    st.lists(st.integers(0, 20_000), max_size=5),
    st.integers(100, 130),
)
def test_any_mixture_of_rows_and_cuts_says_the_same(runs: list[tuple[str, int]], cuts: list[int], first: int) -> None:
    data, step = version(), first
    for kind, count in runs:
        data += b"".join(map(ROW_KINDS[kind], range(step, step + count)))
        step += count
    assert said(read(data, cuts)) == said(read(data, ends_of(data)))
