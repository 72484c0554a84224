r"""Files that begin with UTF-16's byte-order mark, as PowerShell's ``>`` writes them: their lines as UTF-8."""

from __future__ import annotations

from collections.abc import Iterator

_HIGH = (0xD8, 0xDB)  # first byte of the first half of a pair
MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


class Utf16:
    r"""Decodes what comes in any pieces. `held`: bytes that wait for the rest of their character.

    >>> text = Utf16(b"\xff\xfe")
    >>> list(text.take(b"\x41\x00\n\x00\x88")), list(text.take(b"\x25"))
    ([(b'A\n', 4)], [(b'\xe2\x96\x88', 2)])
    """

    def __init__(self, mark: bytes) -> None:
        self._encoding = MARKS[mark]
        self._first = 1 if self._encoding == "utf-16-le" else 0  # which byte of a unit is the high one
        self.held = b""

    @staticmethod
    def may_begin(data: bytes) -> bool:
        """Whether `data`, up to two bytes, is a mark or may become one."""
        return len(data) > 0 and any(mark.startswith(data) for mark in MARKS)

    def take(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        """Lines with their ends, the last one as far as it is there, and how many bytes of the file each was."""
        data = self.held + data
        end = len(data) - len(data) % 2
        if end and _HIGH[0] <= data[end - 2 + self._first] <= _HIGH[1]:
            end -= 2
        self.held = data[end:]
        *lines, rest = data[:end].decode(self._encoding, "replace").split("\n")
        for line in (*(line + "\n" for line in lines), rest):
            if line:
                yield line.encode("utf-8", "replace"), 2 * len(line) + 2 * sum(char > "\uffff" for char in line)
