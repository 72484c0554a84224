"""Gzip data that arrive in pieces, unpacked a bounded piece at a time."""

from __future__ import annotations

import zlib

from trainmon.tails.parts import MAX_UNPACKED_BYTES


class Unpacker:
    """`give` packed bytes, `take` until it has none, and so on. Damaged data end it; `problem` says how."""

    def __init__(self) -> None:
        self.problem = ""
        self.is_ended = False
        self._packed = b""
        self._zlib = zlib.decompressobj(wbits=31)
        self._size = 0

    def give(self, packed: bytes) -> None:
        """The next packed bytes; none at their end."""
        self._packed += packed
        if not packed and not self._packed and not self.is_ended:
            self._end("" if self._zlib.eof or not self._size else "ends in the midst of its packed data")

    def take(self, most: int) -> bytes:
        """The next bytes, at most `most`; none: more must be given, or it has ended."""
        while self._packed and not self.is_ended:
            if self._zlib.eof:
                self._packed = self._packed.lstrip(b"\0")  # padding between members
                if not self._packed:
                    break
                self._zlib = zlib.decompressobj(wbits=31)
            try:
                data = self._zlib.decompress(self._packed, most)
            except zlib.error:
                self._end("its packed data are damaged")
                break
            self._packed = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            self._size += len(data)
            if self._size > MAX_UNPACKED_BYTES:
                self._end(f"unpacks to over {MAX_UNPACKED_BYTES >> 30} GiB")
                break
            if data:
                return data
        return b""

    def _end(self, problem: str) -> None:
        self.is_ended = True
        self.problem = problem
        self._packed = b""
