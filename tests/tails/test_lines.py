from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.lines import HEAD_BYTES, Chunk, LineSplitter

LIMIT = 12
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")

pieces = st.lists(
    st.sampled_from([b"loss", b" 2.5", b"\n", b"\r", b"\r\n", b"\0", b"\0" * 9, b"x" * 13, b"\xef\xbb\xbf"])
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def run(feeds: list[bytes], limit: int) -> tuple[LineSplitter, list[Chunk]]:
    splitter = LineSplitter(limit)
    chunks = [chunk for feed in feeds for chunk in splitter.feed(feed)]
    return splitter, chunks + splitter.flush()


def reference(data: bytes, limit: int) -> list[bytes]:
    lines = _LINE.findall(data.replace(b"\0", b""))
    out = []
    for line in lines:
        content = line.rstrip(b"\r\n")
        if len(content) > limit:
            out.append(content[:limit] + b"\n")
        else:
            out.append(line if line != content else line + b"\n")
    if out and out[0].startswith(b"\xef\xbb\xbf"):
        out[0] = out[0][3:]
    return [line for line in out if line]


def located(chunks: list[Chunk]) -> list[tuple[int, int, bytes]]:
    """Every line with its number and its offset."""
    out = []
    for chunk in chunks:
        offset, line_no = chunk.offset, chunk.line_no
        for line in _LINE.findall(chunk.data):
            out.append((line_no, offset, line))
            offset += len(line)
            line_no += line.endswith(b"\n")
    return out


@given(pieces.map(b"".join), st.lists(st.integers(0, 1000), max_size=12))
def test_any_cut_gives_the_lines_of_the_plain_reading(data: bytes, places: list[int]) -> None:
    splitter, chunks = run(cut(data, places), LIMIT)
    whole, whole_chunks = run([data], LIMIT)
    assert located(chunks) == located(whole_chunks)
    assert [line for _, _, line in located(chunks)] == reference(data, LIMIT)
    assert (splitter.lines, splitter.nul_bytes, splitter.cut_lines) == (whole.lines, whole.nul_bytes, whole.cut_lines)
    assert splitter.losses == whole.losses
    assert splitter.nul_bytes == data.count(b"\0")
    assert splitter.line_no == 1 + data.count(b"\n")


@given(st.binary(max_size=200), st.lists(st.integers(0, 1000), max_size=12))
def test_any_bytes_keep_their_place(data: bytes, places: list[int]) -> None:
    _, chunks = run(cut(data, places), 1 << 20)
    for line_no, offset, line in located(chunks):
        first = line[:1]
        assert data[offset : offset + 1] == first or offset == len(data)
        assert line_no == 1 + data[:offset].count(b"\n")


def test_a_last_line_is_withheld_until_it_ends() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"loss: 2.") == []
    assert splitter.pending == b"loss: 2."
    assert splitter.feed(b"345\n") == [Chunk(b"loss: 2.345\n", 0, 1)]


def test_frames_stream_without_a_newline_ever_coming() -> None:
    splitter = LineSplitter()
    total = 0
    for number in range(200_000 // 500):
        frames = b"".join(b"\r%d%%|loss=%d" % (number, step) for step in range(500))
        total += sum(chunk.data.count(b"\r") for chunk in splitter.feed(frames))
        assert len(splitter.pending) < 100
    assert total == 200_000
    assert splitter.lines == 1
    assert splitter.cut_lines == 0


def test_carriage_return_and_newline_in_two_feeds_are_one_end() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\r") == []
    assert splitter.feed(b"\nb\r") == [Chunk(b"a\r\n", 0, 1)]
    assert splitter.feed(b"c") == [Chunk(b"b\r", 3, 2)]


def test_a_hole_keeps_the_offsets_behind_it() -> None:
    splitter = LineSplitter()
    chunks = splitter.feed(b"\0" * 100 + b"a 1\nb\0\0 2\nc 3\n")
    assert chunks[0] == Chunk(b"a 1\n", 100, 1)
    assert located(chunks)[-1] == (3, 110, b"c 3\n")
    assert splitter.nul_bytes == 102


def test_an_over_long_line_is_kept_by_its_head_and_the_next_line_is_whole() -> None:
    splitter = LineSplitter(limit=1 << 20)
    chunks = splitter.feed(b"x" * (5 << 20) + b"\nloss 1\n")
    assert [len(chunk.data) for chunk in chunks] == [HEAD_BYTES + 1, 7]
    assert chunks[1] == Chunk(b"loss 1\n", (5 << 20) + 1, 2)
    assert splitter.cut_lines == 1


def test_five_megabytes_on_one_line_are_no_over_long_line() -> None:
    line = b'{"loss": [' + b"1.5," * (5 << 18) + b"2]}\n"
    splitter = LineSplitter()
    chunks = [chunk for start in range(0, len(line), 65536) for chunk in splitter.feed(line[start : start + 65536])]
    assert chunks == [Chunk(line, 0, 1)]


@given(
    st.lists(st.sampled_from(["step 1 loss 2", "损失上", " 50%|█▏ |", "\U0001f680", "\r", "\r\n", "\n"]), max_size=12),
    st.sampled_from([("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")]),
    st.lists(st.integers(0, 1000), max_size=12),
)
def test_utf16_comes_out_as_utf8_and_lines_know_their_place(
    parts: list[str], encoding: tuple[str, bytes], places: list[int]
) -> None:
    text, (name, mark) = "".join(parts), encoding
    splitter, chunks = run(cut(mark + text.encode(name), places), 1 << 20)
    out = b"".join(chunk.data for chunk in chunks).decode()
    assert out == text or out[:-1] == text  # the last line gets an end
    lines = text.split("\n")
    begin = {at + 1: 2 + len("".join(line + "\n" for line in lines[:at]).encode(name)) for at in range(len(lines))}
    first = dict(reversed([(chunk.line_no, chunk.offset) for chunk in chunks]))
    assert first == {number: begin[number] for number in first}
    assert splitter.offset == 2 + len(text.encode(name))


def test_half_of_a_byte_order_mark_is_text() -> None:
    splitter = LineSplitter()
    assert [chunk.data for feed in (b"\xff", b"x\n") for chunk in splitter.feed(feed)] == [b"\xffx\n"]
    assert splitter.offset == 3


def test_a_byte_order_mark_counts_in_the_places() -> None:
    assert LineSplitter().feed(b"\xef\xbb\xbfab\nc\n") == [Chunk(b"ab\nc\n", 3, 1)]


def test_the_end_of_an_over_long_line_may_be_cut_anywhere() -> None:
    data = b"x" * 30 + b"\r\nok\n" + b"y" * 30 + b"\rframe\nend\n"

    def told(*cuts: int) -> list[tuple[bytes, int]]:
        splitter, out = LineSplitter(limit=10), []
        for begin, end in itertools.pairwise((0, *cuts, len(data))):
            out += [(chunk.data, chunk.line_no) for chunk in splitter.feed(data[begin:end])]
        joined: dict[int, bytes] = {}
        for part, line_no in out:
            for number, line in enumerate(part.splitlines(keepends=True)):
                at = line_no + part[: sum(map(len, part.splitlines(keepends=True)[:number]))].count(b"\n")
                joined[at] = joined.get(at, b"") + line
        return [(joined[at], at) for at in sorted(joined)]

    whole = told()
    assert [at for line, at in whole if line == b"ok\n"] == [2]
    for cut in range(11, len(data)):
        assert told(cut) == whole, cut
        assert told(11, cut) == whole if cut > 11 else True
