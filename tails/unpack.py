"""Compressed data unpacked piece by piece, in bounded room: gzip, bzip2 and xz; zstd where Python can.

Python 3.14 can by itself; before that the packages ``backports.zstd`` or ``zstandard`` do it.
"""

from __future__ import annotations

import zlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol

_ZSTD_WINDOW: Final = 1 << 27  # what zstd --long=27 makes, the most that its own tool unpacks unasked
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


class _Zstandard:
    """The package ``zstandard``, which gives all that its input unpacks to: it is given little at a time."""

    _PIECE: Final = 128  # bytes, which unpack to 4 MiB at most

    def __init__(self) -> None:
        self._package = import_module("zstandard")
        self._inner = self._package.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        self._waiting = b""
        self._is_ended = self.is_ended = self.holds = False

    def take(self, data: bytes, most: int) -> tuple[bytes, bytes]:
        pieces, size = [self._waiting], len(self._waiting)
        while data and size < most and not self._is_ended:
            try:
                pieces.append(self._inner.decompress(data[: self._PIECE]))
            except self._package.ZstdError as error:
                raise UnpackError(str(error)) from error
            size += len(pieces[-1])
            self._is_ended = self._inner.eof
            data = (self._inner.unused_data if self._is_ended else b"") + data[self._PIECE :]
        out = b"".join(pieces)
        self._waiting = out[most:]
        self.holds = bool(self._waiting)
        self.is_ended = self._is_ended and not self.holds
        return out[:most], data


@cache
def _zstd_module() -> str:
    """What unpacks zstd here: the name of a module; "" where there is none."""
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            if find_spec(name) is not None:
                return name
        except ModuleNotFoundError:  # of the package that it would be in
            continue
    return ""


def packing_of(name: str) -> str:
    """How a file of that name is packed, as far as it can be read; "" where it is not.

    >>> packing_of("train.log.gz"), packing_of("metrics.jsonl.XZ"), packing_of("train.log.7z"), packing_of("gz")
    ('gz', 'xz', '', '')
    """
    stem, _, ending = name.rpartition(".")
    ending = ending.lower()
    if not stem or ending not in ("gz", "bz2", "xz", "zst"):
        return ""
    return ending if ending != "zst" or _zstd_module() else ""


def unpacker(packing: str) -> Unpacker:
    """A fresh one for `packing`, as `packing_of` says it."""
    if packing == "bz2":
        import bz2  # for those who have such files

        return _Whole(bz2.BZ2Decompressor(), (OSError, ValueError, EOFError))
    if packing == "xz":
        import lzma

        return _Whole(lzma.LZMADecompressor(memlimit=_XZ_MEMORY), (lzma.LZMAError, EOFError))
    if packing == "zst":
        if _zstd_module() == "zstandard":
            return _Zstandard()
        zstd = import_module(_zstd_module())
        return _Whole(zstd.ZstdDecompressor(), (zstd.ZstdError, EOFError))
    return _Gzip()
