"""Long packets are read to where they belong: the same packets come out as when they are added piece by piece."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.ssh.frame import LONG_BYTES, Frame, FrameBuffer

LENGTHS = st.lists(st.sampled_from([0, 1, 700, LONG_BYTES - 1, LONG_BYTES, LONG_BYTES + 1, 3 * LONG_BYTES]), max_size=5)


def stream_of(lengths: list[int]) -> tuple[bytes, list[Frame]]:
    """The bytes of packets with payloads so long, and the packets."""
    frames = [Frame("D", number, random.Random(number).randbytes(length)) for number, length in enumerate(lengths)]
    return b"".join(b"D %08x %08x\n" % (f.number, len(f.payload)) + f.payload for f in frames), frames


@given(LENGTHS, st.lists(st.integers(1, 5 * LONG_BYTES), max_size=30), st.booleans())
def test_what_is_read_into_its_place_and_what_is_added(lengths: list[int], sizes: list[int], is_added: bool) -> None:
    stream, frames = stream_of(lengths)
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
    assert came == frames


def test_a_long_packet_is_not_taken_before_its_last_byte() -> None:
    stream, frames = stream_of([LONG_BYTES])
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
