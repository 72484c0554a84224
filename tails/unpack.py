"""Compressed data unpacked piece by piece, in bounded room: gzip, bzip2 and xz."""

from __future__ import annotations

import zlib
from typing import Any, Final, Protocol

_XZ_MEMORY: Final = 256 << 20  # xz -9 needs 65 MiB; what asks for more is no log


class UnpackError(Exception):
    """The data are damaged, or are not what their name says."""


class Unpacker(Protocol):
    """One member of a packed file. `holds`: what it was given before still gives bytes. `is_ended`: the member is."""

    is_ended: bool
    holds: bool

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        """Up to `most` unpacked bytes, and what is left of `data`. Raises `UnpackError`."""


class _Gzip:
    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self.is_ended = self.holds = False

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        try:
            out = self._inner.decompress(data, most)
        except zlib.error as error:
            raise UnpackError(str(error)) from error
        self.is_ended = self._inner.eof
        return out, self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail


class _Whole:
    """bzip2's and xz's, which keep all that they are given: no more than one piece at a time."""

    def __init__(self, inner: Any, errors: tuple[type[Exception], ...]) -> None:
        self._inner, self._errors = inner, errors
        self.is_ended = self.holds = False

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        wants = self._inner.needs_input
        try:
            out = self._inner.decompress(data if wants else b"", most)
        except self._errors as error:
            raise UnpackError(str(error)) from error
        self.is_ended = self._inner.eof
        self.holds = not self.is_ended and not self._inner.needs_input
        if self.is_ended:
            return out, self._inner.unused_data + (b"" if wants else data)
        return out, b"" if wants else data


def packing_of(name: str) -> str:
    """How a file of that name is packed, as far as it can be read; "" where it is not.

    >>> packing_of("train.log.gz"), packing_of("metrics.jsonl.XZ"), packing_of("train.log.zst"), packing_of("gz")
    ('gz', 'xz', '', '')
    """
    stem, _, ending = name.rpartition(".")
    return ending.lower() if stem and ending.lower() in ("gz", "bz2", "xz") else ""


def unpacker(packing: str) -> Unpacker:
    """A fresh one for `packing`, as `packing_of` says it."""
    if packing == "bz2":
        import bz2  # for those who have such files

        return _Whole(bz2.BZ2Decompressor(), (OSError, ValueError, EOFError))
    if packing == "xz":
        import lzma

        return _Whole(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), (lzma.LZMAError, EOFError))
    return _Gzip()
