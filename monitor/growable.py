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

    def append(self, values: NDArray[Any]) -> None:
        """Adds `values` at the end."""
        end = self._size + len(values)
        if end > len(self._buffer):
            larger = np.empty(max(_FIRST_SIZE, end, int(len(self._buffer) * 1.5)), self._buffer.dtype)
            larger[: self._size] = self._buffer[: self._size]
            self._buffer = larger
        self._buffer[self._size : end] = values
        self._size = end

    def view(self) -> NDArray[Any]:
        """(n,) all values, read-only, without a copy."""
        view = self._buffer[: self._size]
        view.flags.writeable = False
        return view
