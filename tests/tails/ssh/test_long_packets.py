"""Long packets are read to where they belong: the same packets come out as when they are added piece by piece."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.ssh.frame import LONG_BYTES, MAX_PAYLOAD_BYTES, MAX_POURED_BYTES, BadAnswer, Frame, FrameBuffer

KINDS = st.sampled_from(["D", "P", "PD", "DPP"])
LENGTHS = st.lists(st.sampled_from([0, 1, 700, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1, 3 * LONG_BYTES]), max_size=5)


def stream_of(lengths: list[int], kinds: str) -> tuple[bytes, list[Frame]]:
    """The bytes of packets with payloads so long, and the packets."""
    frames = [
        Frame(kinds[number % len(kinds)], number, random.Random(number).randbytes(length))
        for number, length in enumerate(lengths)
    ]
    return b"".join(b"%s %08x %08x\n" % (f.kind.encode(), f.number, len(f.payload)) + f.payload for f in frames), frames


def joined(frames: list[Frame]) -> list[Frame]:
    """The packets, where some came in pieces."""
    whole: list[Frame] = []
    for frame in frames:
        if frame.kind == "P" and whole and whole[-1].number == frame.number:
            frame = Frame("P", frame.number, whole.pop().payload + frame.payload)
        whole.append(frame)
    return whole


@given(
    LENGTHS,
    st.lists(st.integers(1, 5 * LONG_BYTES), max_size=30),
    st.booleans(),
    st.sampled_from(["D", "P", "PD", "DPP"]),
)
def test_what_is_read_into_its_place_and_what_is_added(
    lengths: list[int], sizes: list[int], is_added: bool, kinds: str
) -> None:
    stream, frames = stream_of(lengths, kinds)
    buffer, came = FrameBuffer(), []
    for size in (*sizes, *[LONG_BYTES] * (len(stream) // LONG_BYTES + 1)):
        piece, stream = stream[:size], stream[size:]
        rest = None if is_added else buffer.rest()
        if rest is not None:  # as readv fills it, and then what lies behind
            count = min(len(rest), len(piece))
            rest[:count] = piece[:count]
            buffer.filled(count)
            piece = piece[count:]
        buffer.add(piece)
        came += list(buffer.take())
    assert joined(came) == frames
    assert kinds != "D" or came == frames


def test_a_long_packet_is_not_taken_before_its_last_byte() -> None:
    stream, frames = stream_of([LONG_BYTES], "D")
    buffer = FrameBuffer()
    buffer.add(stream[:100])
    assert list(buffer.take()) == []
    rest = buffer.rest()
    assert rest is not None
    rest[: len(rest) - 1] = stream[100:-1]
    buffer.filled(len(rest) - 1)
    assert list(buffer.take()) == []
    buffer.add(stream[-1:] + b"S 00000007 00000002\nok")
    assert list(buffer.take()) == [*frames, Frame("S", 7, b"ok")]


def test_part_of_a_file_is_given_on_as_it_comes_and_not_held() -> None:
    stream, _ = stream_of([3 * LONG_BYTES], "P")
    buffer = FrameBuffer()
    buffer.add(stream[:100])
    assert [len(frame.payload) for frame in buffer.take()] == [80]
    piece = stream[100:5000]
    buffer.add(piece)
    [frame] = buffer.take()
    assert frame.payload is piece


@pytest.mark.parametrize(("kind", "most"), [("P", MAX_POURED_BYTES), ("D", MAX_PAYLOAD_BYTES)])
def test_a_packet_that_is_too_long_is_refused_at_its_header(kind: str, most: int) -> None:
    buffer = FrameBuffer()
    buffer.add(b"%s 00000001 %08x\n" % (kind.encode(), most + 1))
    with pytest.raises(BadAnswer):
        list(buffer.take())
