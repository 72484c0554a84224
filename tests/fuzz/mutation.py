"""Logs as they should not be: seeds that are cut, doubled, mixed and filled with what is hostile."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from tests.fuzz import seeds
from tests.fuzz.budget import ASKED

HOSTILE = (
    *(b"\0", b"\0" * 40, b"\r", b"\n", b"\r\n", b"\t", b"\x0b", b"\x0c", b"\x08" * 9, b"\x85", b"\xe2\x80\xa8"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\xff" * 9, b"\xf4\x90\x80\x80"),
    *(b"\x1b[31m", b"\x1b]52;c;aGk=\x07", b"\x1b]0;title\x1b\\", b"\x1bPq#0\x1b\\", b"\x1b", b"\x9b2J", b"\x1b[200~"),
    *(b"nan", b"NaN", b"-inf", b"Infinity", b"null", b"None", b"true", b"1e999", b"-1e999", b"1e-999", b"-0", b"0x1f"),
    *(
        b"9" * 400,
        b"1_000",
        b"1,234.5",
        b"1.2.3",
        b"--1",
        b"+1",
        b".",
        b"e",
        b"1e",
        b"\xd9\xa3",
        b"\xc2\xb2",
        b"\xe2\x85\xa7",
    ),
    *(b"step", b"loss", b"step: 5 ", b"loss: 2.5 ", b"step=7", b"iteration 7/9 |", b"epoch", b"rank3", b"[rank1]: "),
    *(b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b"\\u0000", b"\\ud800", b",", b":", b"=", b"|", b"%|", b"(", b")"),
    *(b'{"step": 3, "loss": NaN}\n', b'{"loss": 1e400}\n', b'{"a": {"a": ' * 70, b"[" * 600, b'{"": 1}\n', b"{}\n"),
    *(b"2024-01-01 00:00:00,123 ", b"[00:00:00] ", b"2024-13-99T99:99:99Z ", b"I0229 10:00:00.000 1 a.py:1] "),
    *(b"0001-01-01T00:00:00+23:59 ", b"9999-12-31T23:59:59-23:59 ", b"1400000000 ", b"/", b"#", b"-" * 30, b"=" * 30),
    *(
        b"[bold red]",
        b"[/]",
        b"$(id)",
        b"`id`",
        b"../../etc/passwd",
        b"__class__",
        b"%s%n",
        b"\xe2\x80\xae",
        b"\xe2\x80\x8b",
    ),
    *seeds.WORDS,
)
_PLACE = st.integers(0, 1 << 16)
_LENGTH = st.integers(1, 400)


def _insert(at: int, what: bytes) -> tuple[str, int, int, bytes]:
    return "insert", at, 0, what


def _remove(at: int, length: int) -> tuple[str, int, int, bytes]:
    return "remove", at, length, b""


def _double(at: int, length: int, times: int) -> tuple[str, int, int, bytes]:
    return "double", at, length, b"." * times


def _flip(at: int, bit: int) -> tuple[str, int, int, bytes]:
    return "flip", at, bit, b""


def _replace(at: int, length: int, what: bytes) -> tuple[str, int, int, bytes]:
    return "replace", at, length, what


def _end(at: int) -> tuple[str, int, int, bytes]:
    return "end", at, 0, b""


_TOKEN = st.one_of(st.sampled_from(HOSTILE), st.binary(max_size=8), st.floats().map(lambda x: repr(x).encode()))
_CHANGE = st.one_of(
    st.builds(_insert, _PLACE, _TOKEN),
    st.builds(_replace, _PLACE, st.integers(0, 12), _TOKEN),
    st.builds(_remove, _PLACE, _LENGTH),
    st.builds(_double, _PLACE, _LENGTH, st.integers(1, 24)),
    st.builds(_flip, _PLACE, st.integers(0, 7)),
    st.builds(_end, _PLACE),
)


def changed(data: bytes, change: tuple[str, int, int, bytes]) -> bytes:
    """`data` with one change: its kind, place (modulo the length), length and new bytes."""
    kind, place, length, what = change
    at = place % (len(data) + 1)
    if kind == "flip":
        return data[:at] + bytes(byte ^ 1 << length for byte in data[at : at + 1]) + data[at + 1 :]
    if kind == "double":
        return data[:at] + data[at : at + length] * len(what) + data[at:]
    if kind == "end":
        return data[:at]
    return data[:at] + what + data[at + length :]


def changed_from(pool: Sequence[bytes], most: int = 8) -> st.SearchStrategy[bytes]:
    """One or two of `pool`, each said several times over, with up to `most` changes."""
    beginning = st.builds(
        lambda parts, times: b"".join(part * times for part in parts),
        st.lists(st.sampled_from(pool), min_size=1, max_size=2),
        st.integers(1, 4),
    )
    return st.builds(
        lambda data, changes: functools.reduce(changed, changes, data), beginning, st.lists(_CHANGE, max_size=most)
    )


def logs(most: int = 8) -> st.SearchStrategy[bytes]:
    """Logs from all seeds; those of real logs only in a long run, so that CI's inputs are the same everywhere."""
    return changed_from(seeds.own() + (seeds.real() if ASKED else ()), most)


CUTS = st.lists(_PLACE, max_size=9)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """`data` cut at the given places, taken modulo its length; no piece is empty (that would say "quiet for now")."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges) if start < end]
