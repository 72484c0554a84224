"""What a host at the other end of a connection may send: anything."""

from __future__ import annotations

import contextlib
import zlib

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import fuzz
from tests.fuzz.mutation import CUTS, changed_from, pieces
from trainmon.tails.ssh import answer
from trainmon.tails.ssh.frame import HEADER_BYTES, MAX_PAYLOAD_BYTES, BadAnswer, Frame, FrameBuffer, escaped, word

STATUS = b"2049 77 1000 1700000000.123456789"


def packet(kind: str, number: int, payload: bytes) -> bytes:
    return f"{kind} {number:08x} {len(payload):08x}\n".encode() + payload


PAYLOADS = (
    b"2",
    STATUS,
    b"3 " + STATUS + b" 0 5 r\nhello",
    b"3 " + STATUS + b" 0 500 z\n" + zlib.compress(b"a" * 500),
    b"3 " + STATUS + b"\nfirst bytes",
    STATUS + b"\npiece",
    b"01\n81a4 1 2 3 4.000000000\n41ed 5 6 7 8.000000000\n\na.log/b",
    b"0 2049 77",
    b"0 3\noutand err",
)
STREAMS = tuple(packet("SDXKLMRh"[n % 8], n, payload) for n, payload in enumerate(PAYLOADS))
READERS = (
    *(answer.number, answer.status_of, answer.stat_or_errno, answer.data_of, answer.difference_of, answer.piece_of),
    *(answer.entries_of, answer.end_of_listing, answer.result_of),
)


def taken(parts: list[bytes]) -> tuple[list[Frame], bool]:
    """The packets of a stream in parts, and whether it was refused in the end."""
    buffer, frames = FrameBuffer(), []
    for part in parts:
        buffer.add(part)
        try:
            for frame in buffer.take():
                frames.append(frame)
        except BadAnswer:
            return frames, True
    return frames, False


@fuzz(300)
@given(changed_from(STREAMS), CUTS)
def test_a_stream_is_cut_into_the_same_packets_however_it_arrives(stream: bytes, cuts: list[int]) -> None:
    frames, is_refused = taken([stream])
    assert taken(pieces(stream, cuts)) == (frames, is_refused)
    assert all(len(frame.payload) <= MAX_PAYLOAD_BYTES for frame in frames)
    told = sum(HEADER_BYTES + len(frame.payload) for frame in frames)
    assert told <= len(stream)
    assert b"".join(packet(frame.kind, frame.number, frame.payload) for frame in frames) == stream[:told]


@fuzz(300)
@given(changed_from(PAYLOADS))
def test_an_answer_is_understood_or_refused(payload: bytes) -> None:
    for reads in READERS:
        with contextlib.suppress(BadAnswer):
            reads(payload.split(b" ") if reads is answer.status_of else payload)  # type: ignore[operator]


@fuzz(100)
@given(st.integers(0, 1 << 28))
def test_compressed_data_take_no_more_room_than_was_announced(length: int) -> None:
    bomb = zlib.compress(bytes(1 << 20))
    with contextlib.suppress(BadAnswer):
        _, _, _, body = answer.data_of(b"3 " + STATUS + b" 0 %d z\n" % length + bomb)
        assert len(body) == length <= answer.MAX_CHUNK_BYTES


@fuzz(200)
@given(st.binary(max_size=300))
def test_whatever_is_sent_there_is_one_word(raw: bytes) -> None:
    for sent in (word(raw), escaped(raw)):
        assert not set(sent) & set(b" \t\n\r\0'\"`$;&|<>(){}*?~#!")
