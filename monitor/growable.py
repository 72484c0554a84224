"""An array that grows at its end and hands out views that never change."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_FIRST_SIZE: Final = 64


class Growable:
    """Append-only. A view stays as it was: a full buffer is copied into a larger one, never written over.

    >>> column = Growable(np.array([1.0, 2.0]))
    >>> early = column.view()
    >>> column.append(np.arange(100.0))
    >>> early.tolist(), len(column), early.flags.writeable
    ([1.0, 2.0], 102, False)
    """

    __slots__ = ("_buffer", "_size")

    def __init__(self, values: NDArray[Any], room: int = 0) -> None:
        """`room`: how many values it is to hold before it needs another buffer."""
        self._size = len(values)
        if room > self._size:
            self._buffer = np.empty(room, values.dtype)
            self._buffer[: self._size] = values
        else:
            self._buffer = np.array(values)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Bytes held, spare room included."""
        return self._buffer.nbytes

    def __deepcopy__(self, _memo: dict[int, Any]) -> Growable:
        """Shares what is there: the copy moves into a buffer of its own with the first value that it is given."""
        other = Growable.__new__(Growable)
        other._buffer, other._size = self.view(), self._size
        return other

    def append(self, values: NDArray[Any]) -> None:
        """Adds `values` at the end."""
        if not len(values):
            return
        end = self._size + len(values)
        if end > len(self._buffer):
            # A copy is there for a look ahead and gets few more values.
            room = int(len(self._buffer) * 1.5) if self._buffer.flags.writeable else end + _FIRST_SIZE
            larger = np.empty(max(_FIRST_SIZE, end, room), self._buffer.dtype)
            larger[: self._size] = self._buffer[: self._size]
            self._buffer = larger
        self._buffer[self._size : end] = values
        self._size = end

    def view(self) -> NDArray[Any]:
        """(n,) all values, read-only, without a copy."""
        view = self._buffer[: self._size]
        view.flags.writeable = False
        return view
