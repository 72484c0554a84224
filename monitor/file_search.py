"""Looking for words in a large file on this machine: its bytes are searched; only lines that may hold them are read."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from trainmon.monitor.log_search import LogSearch, Read
from trainmon.tails.opening import NotRegular, close, open_regular

_BLOCK: Final = 16 << 20  # each takes a turn with the threads that read and draw
_SPACING: Final = 16 << 20
_HEAD: Final = 4096
_LONGEST_CODE: Final = 64
# Colours and the like: lines are shown without them.
_CODES: Final = re.compile(rb"\x1b\[[0-9;?]{0,40}[ -/]{0,4}[@-~]")


class Places:
    """Line numbers and where the lines begin, as far as searches have come: the next one need not count again."""

    def __init__(self) -> None:
        self._lines = [1]
        self._offsets = [0]

    def add(self, line: int, offset: int) -> None:
        """`line` begins at `offset`."""
        if offset >= self._offsets[-1] + _SPACING:
            self._offsets.append(offset)  # before the line, by which other threads find it
            self._lines.append(line)

    def before(self, line: int) -> tuple[int, int]:
        """The last known line at or before `line`, and its offset."""
        place = max(bisect_right(self._lines, line) - 1, 0)
        return self._lines[place], self._offsets[place]


class FileSearch(LogSearch):
    """As its base, and many times faster where `can_search`: `read` is asked for the lines that seem to match alone."""

    def __init__(self, read: Read, path: str, line_no: int, words: str, by: int, places: Places) -> None:
        super().__init__(read, path, line_no, words, by)
        self._places = places
        self._needle = self._wanted.encode()
        self._kept = len(self._needle) + _LONGEST_CODE  # of a block, before the next one

    def can_search(self) -> bool:
        """Whether bytes tell all: words in ASCII, a plain text file, its lines numbered as `read` numbers them.

        They are not where the file is the newest part of a log that was rotated, or lies on another host.
        """
        if not self._wanted or not self._wanted.isascii():
            return False
        try:
            descriptor, _ = open_regular(self.path)
        except (OSError, NotRegular):
            return False
        try:
            head = os.pread(descriptor, _HEAD, 0)
        except OSError:
            return False
        finally:
            close(descriptor)
        first, end, _ = head.partition(b"\n")
        if not end or b"\0" in head or head.startswith(b"\x1f\x8b"):
            return False
        shown = self._read(1, 0)
        return bool(shown) and shown[0].text.startswith(first.decode("utf-8", "replace").rstrip("\r").strip()[:20])

    def _search(self) -> None:
        if not self.can_search():
            super()._search()
            return
        descriptor, _ = open_regular(self.path)
        try:
            if self._by > 0:
                number, offset = self._place_of(descriptor, self.at + 1) if self.at > 0 else (0, -1)
            else:
                number, offset = self._place_of(descriptor, self.at if self.at > 0 else sys.maxsize)
            if offset >= 0:
                (self._forward if self._by > 0 else self._backward)(descriptor, number, offset)
        finally:
            close(descriptor)

    def _place_of(self, descriptor: int, line: int) -> tuple[int, int]:
        """(`line`, where it begins), or the number and place of the file's end; place -1 when it was cancelled."""
        number, offset = self._places.before(line)
        while number < line:
            if self._stopped.is_set():
                return number, -1
            block = os.pread(descriptor, _BLOCK, offset)
            count = block.count(b"\n")
            if not block:
                break
            if number + count < line:
                number, offset = self._pass(block, number, offset)
                if self.at < 0:
                    self.counted = number
                continue
            place = -1
            for _ in range(line - number):
                place = block.index(b"\n", place + 1)
            return line, offset + place + 1
        return number, offset

    def _pass(self, block: bytes, number: int, offset: int) -> tuple[int, int]:
        """(line of the byte after `block`, its offset); `number` is the line of the block's first byte."""
        number += block.count(b"\n")
        if b"\n" in block:
            self._places.add(number, offset + block.rfind(b"\n") + 1)
        return number, offset + len(block)

    def _forward(self, descriptor: int, number: int, offset: int) -> None:
        """Blocks that overlap, so that nothing is missed at an edge."""
        kept = self._kept
        while not self._stopped.is_set():
            block = os.pread(descriptor, _BLOCK, offset)
            text = _searched(block)
            for place in self._places_in(text):
                line = number + text.count(b"\n", 0, place)
                if self._holds(line):
                    self.found = line
                    return
            if len(block) < _BLOCK:
                return
            number, offset = self._pass(block[: _BLOCK - kept], number, offset)
            self.at = number

    def _backward(self, descriptor: int, number: int, end: int) -> None:
        """The same from `end`, where the line `number` begins, to the beginning of the file."""
        origin = self.at if self.at > 0 else sys.maxsize
        kept = self._kept
        while end > 0 and not self._stopped.is_set():
            start = max(0, end - _BLOCK)
            block = os.pread(descriptor, end - start, start)
            if len(block) < end - start:
                return  # it was cut meanwhile
            text = _searched(block)
            for place in reversed(list(self._places_in(text))):
                line = number - text.count(b"\n", place)
                if line < origin and self._holds(line):
                    self.found = line
                    return
            if not start:
                return
            number -= block.count(b"\n", kept)
            end = start + kept
            self.at = number

    def _places_in(self, text: bytes) -> Iterator[int]:
        """Where in `text` lines seem to match, in order."""
        return places_of(self._needle, text)

    def _holds(self, line: int) -> bool:
        """Whether the line as it is shown holds the words (what is redrawn in place may hold them no longer)."""
        if self._stopped.is_set():
            return False
        return any(one.line_no == line and self._fits(one.text) for one in self._read(line, 0))


def _searched(block: bytes) -> bytes:
    """What of `block` is searched; it has as many ends of lines."""
    text = block.lower()
    return _CODES.sub(b"", text) if b"\x1b" in text else text


def places_of(needle: bytes, block: bytes) -> Iterator[int]:
    """Where `needle` is in `block`, once a line."""
    place = block.find(needle)
    while place >= 0:
        yield place
        end = block.find(b"\n", place)
        place = block.find(needle, end) if end >= 0 else -1
