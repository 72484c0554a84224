"""Values of one record of many alike: as they stand in the log, to be read together, or as a row of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from trainmon.tails.formats.digits import NumberAt
from trainmon.tails.record import FloatArray


class Columns:
    """Names and places of the metrics in lines of one outline."""

    __slots__ = ("_of_rank", "extent", "names", "numbers", "spans")

    def __init__(self, names: tuple[str, ...], outline: bytes, spans: list[tuple[int, int]]) -> None:
        self.names = names
        self.spans = [slice(start, end) for start, end in spans]
        self.extent = slice(min(start for start, _ in spans), max(end for _, end in spans)) if spans else slice(0)
        self.numbers = [NumberAt(outline, start, end) for start, end in spans]
        self._of_rank: dict[str, Columns] = {}

    def of_rank(self, rank: str) -> Columns:
        """The same with the rank in each name."""
        if rank not in self._of_rank:
            own = Columns(tuple(f"{name}{{rank={rank}}}" for name in self.names), b"", [])
            own.numbers, own.spans, own.extent = self.numbers, self.spans, self.extent
            self._of_rank[rank] = own
        return self._of_rank[rank]


class RawValues(Mapping[str, float | None]):
    """The metrics of one line; each is read when it is asked for.

    >>> values = RawValues(Columns(("loss", "lr"), b"0.0 0e-0", [(0, 3), (4, 8)]), b"2.5 1e-4")
    >>> dict(values)
    {'loss': 2.5, 'lr': 0.0001}
    """

    __slots__ = ("columns", "line")

    def __init__(self, columns: Columns, line: bytes) -> None:
        self.columns = columns
        self.line = line

    @property
    def names(self) -> tuple[str, ...]:
        """The keys, in order."""
        return self.columns.names

    def numbers(self) -> Iterator[float]:
        """The values, in order."""
        return (float(self.line[span]) for span in self.columns.spans)

    def of_rank(self, rank: str) -> RawValues:
        """The same with the rank in each name."""
        return RawValues(self.columns.of_rank(rank), self.line)

    def __getitem__(self, key: str) -> float:
        if key not in self.columns.names:
            raise KeyError(key)
        number = self.columns.numbers[self.columns.names.index(key)]
        return float(self.line[number.start : number.end])

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns.names)

    def __len__(self) -> int:
        return len(self.columns.names)


class RowValues(Mapping[str, float | None]):
    """The metrics of one line: row `row` of `matrix`, which belongs to all lines read with it."""

    __slots__ = ("matrix", "names", "row")

    def __init__(self, names: tuple[str, ...], matrix: FloatArray, row: int) -> None:
        self.names = names
        self.matrix = matrix
        self.row = row

    def numbers(self) -> Iterator[float]:
        """The values, in order."""
        return iter(self.matrix[self.row].tolist())

    def __getitem__(self, key: str) -> float:
        if key not in self.names:
            raise KeyError(key)
        return float(self.matrix[self.row, self.names.index(key)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def of_rank(self, rank: str) -> RowValues:
        """The same with the rank in each name."""
        return RowValues(_of_rank(self.names, rank), self.matrix, self.row)


@lru_cache(maxsize=4096)
def _of_rank(names: tuple[str, ...], rank: str) -> tuple[str, ...]:
    """`names` with the rank in each; the same tuple each time."""
    return tuple(f"{name}{{rank={rank}}}" for name in names)
