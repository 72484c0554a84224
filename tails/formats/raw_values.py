"""Values of one record as they stand in the log, not yet numbers: many records are turned to numbers at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from trainmon.tails.record import FloatArray


class RawValues(Mapping[str, float | None]):
    """Keys and the bytes of their values, each of which `float` reads.

    >>> values = RawValues(("loss", "lr"), (b"2.5", b"1e-4"))
    >>> dict(values)
    {'loss': 2.5, 'lr': 0.0001}
    """

    __slots__ = ("cells", "names")

    def __init__(self, names: tuple[str, ...], cells: Sequence[bytes]) -> None:
        self.names = names
        self.cells = cells

    def __getitem__(self, key: str) -> float:
        try:
            return float(self.cells[self.names.index(key)])
        except ValueError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def matrix_of(rows: list[Sequence[bytes]]) -> FloatArray:
    """(rows, values) float64 of the cells of `rows`, which are all of one length."""
    text = b"\n".join([b" ".join(row) for row in rows])
    flat = np.fromstring(text, np.float64, sep=" ")
    return flat.reshape(len(rows), -1)
