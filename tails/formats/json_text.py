"""JSON objects in a line, whatever else is in it: NaN tokens, huge numbers, glued, torn or interleaved objects."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from trainmon.tails.lazy_pattern import lazy

Objects = list[tuple[int, dict[str, Any]]]

_FAST = msgspec.json.Decoder()
_TOLERANT = json.JSONDecoder(parse_int=float, strict=False)
_NO_UTF8 = lazy("[\udc80-\udcff]")
_OBJECT_START = lazy(r'\{\s*["}]')
_RETRIES = 8  # failed attempts in one line; each may read to its end
_BLANK = " \t\r\n,;\x00\ufeff"
# Before an object that stands inside another, never before a record of its own.
_INSIDE = ":,[{"


def objects_in(line: bytes) -> tuple[Objects, int]:
    """The JSON objects of `line` with the byte offset of each, and how many stretches could not be read.

    An object inside a torn one is never taken for a record. Those of an array that holds nothing else are records.

    >>> objects_in(b'{"loss": NaN}{"loss": 1e999}')
    ([(0, {'loss': nan}), (13, {'loss': inf})], 0)
    >>> objects_in(b'{"step": 5, "lo{"step": 6}')
    ([(15, {'step': 6.0})], 1)
    >>> objects_in(b'{"step": 5, "cfg": {"a": 1}, "lo')
    ([], 1)
    >>> objects_in(b'[{"step": 5}, {"step": 6}]')
    ([(1, {'step': 5.0}), (14, {'step': 6.0})], 0)
    """
    if line.lstrip()[:1] == b"[":
        return _in_array(line)
    try:
        value = _FAST.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _scan(line)
    if isinstance(value, dict):
        return [(len(line) - len(line.lstrip()), value)], 0
    return [], 1


def _in_array(line: bytes) -> tuple[Objects, int]:
    start, end = line.find(b"["), line.rfind(b"]")
    if line[start + 1 : end].lstrip()[:1] != b"{" or line[end + 1 :].strip(b" \t\r\n,\0"):
        return _scan(line)
    found, lost = _scan(line[:start] + b" " + line[start + 1 : end])
    return ([], 1) if lost else (found, 0)


def tolerant(text: str) -> Any:
    """The JSON value of `text` with NaN, Infinity and numbers of any size. Raises ValueError or RecursionError."""
    return _TOLERANT.decode(text)


def decoded(data: bytes) -> tuple[str, str]:
    r"""The text of `data`, and one as long that gives the bytes back (`size_of`): each byte that is no UTF-8 is one
    character of both.

    >>> decoded(b"a\xff{}")
    ('a\ufffd{}', 'a\udcff{}')
    """
    escaped = data.decode("utf-8", "surrogateescape")
    is_text = escaped.isascii() or _NO_UTF8.search(escaped) is None
    return (escaped if is_text else _NO_UTF8.sub("\ufffd", escaped)), escaped


def size_of(escaped: str) -> int:
    """How many bytes a stretch of the second text of `decoded` was."""
    return len(escaped) if escaped.isascii() else len(escaped.encode("utf-8", "surrogateescape"))


def _scan(line: bytes) -> tuple[Objects, int]:
    text, escaped = decoded(line)
    found: Objects = []
    failures = position = counted = counted_bytes = 0
    lost = False
    for _ in range(len(text)):
        start = _OBJECT_START.search(text, position)
        between = text[position : start.start() if start else len(text)].strip(_BLANK)
        if start is None or failures > _RETRIES:
            lost = lost or bool(between)
            break
        position = start.start()
        if between and between[-1] in _INSIDE:
            lost, position = True, position + 1
            continue
        try:
            value, end = _TOLERANT.raw_decode(text, position)
        except (ValueError, RecursionError):
            failures, lost, position = failures + 1, True, position + 1
            continue
        lost = lost or bool(between)
        counted_bytes += size_of(escaped[counted:position])
        counted = position
        found.append((counted_bytes, value))
        position = end
    return found, int(lost)
