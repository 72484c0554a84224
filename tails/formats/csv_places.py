"""Steps in a table that are told with how many there will be: ``12/300``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainmon.tails.formats.cells import place_of
from trainmon.tails.formats.records import RecordReader
from trainmon.tails.record import Fact
from trainmon.tails.steps import WEAK_RANK, step_rank

_TOTAL: Final = "total_steps"


class Places:
    """The columns of steps of one table. `reader` is told the total wherever it changes."""

    def __init__(self, names: Sequence[str], reader: RecordReader) -> None:
        self._names = names
        self._reader = reader
        ranks = [(index, step_rank(name)) for index, name in enumerate(names)]
        self._columns = [index for index, rank in ranks if rank is not None and rank < WEAK_RANK]
        self._total = 0.0

    def bare(self, fields: list[str], line_no: int) -> None:
        """Leaves of such a field of `fields` the step alone."""
        for index in self._columns:
            if "/" not in fields[index] or (told := place_of(self._names[index], fields[index])) is None:
                continue
            fields[index] = f"{told[0]:.0f}"
            if told[1] != self._total:
                self._total = told[1]
                label = self._reader.run.label
                self._reader.parsed.facts.append(Fact(self._reader.source, line_no, _TOTAL, told[1], label))
