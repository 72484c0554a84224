"""What a table's columns hold: numbers, numbers with a unit (``12.3 ms``, ``45%``, ``1.2GB``), or words."""

from __future__ import annotations

from collections.abc import Sequence

from trainmon.tails.formats.csv_columns import SAYS_NOTHING, Column, column_of
from trainmon.tails.formats.csv_header import is_number
from trainmon.tails.formats.measured import counted, in_unit, may_be_measured, measured

_SHARE = "%"


class ColumnKinds:
    """What each column of a table is, by its first field that is filled.

    >>> kinds = ColumnKinds()
    >>> kinds.holds_numbers(0, "dt", ["", "12.5 ms"]), kinds.name_of(0, "dt")
    (True, 'dt (ms)')
    >>> column, marks, words = kinds.column(0, ["", "12.5 ms", "1.25 s", "1 GB"])
    >>> column.tolist(), words
    ([nan, 12.5, 1250.0, nan], [3])
    """

    def __init__(self) -> None:
        self._are_numbers: dict[int, bool] = {}
        self._units: dict[int, str] = {}  # "" for counts with a lone letter: 1.2M
        self._names: dict[int, str] = {}

    def holds_numbers(self, index: int, name: str, fields: Sequence[str]) -> bool | None:
        """Whether a column is one of numbers; None while none of its fields was filled."""
        if index not in self._are_numbers:
            filled = next((field for field in fields if field not in SAYS_NOTHING), None)
            if filled is None:
                return None
            self._names[index] = name
            self._are_numbers[index] = is_number(filled.removesuffix(_SHARE)) or self._finds_unit(index, name, filled)
            if filled.endswith(_SHARE) and self._are_numbers[index]:
                self._units[index] = _SHARE
        return self._are_numbers[index]

    def name_of(self, index: int, name: str) -> str:
        """The name of a column, with the unit that its fields have behind it."""
        unit = self._units.get(index, "")
        return f"{name} ({unit})" if unit and not name.lower().endswith(f"_{unit.lower()}") else name

    def column(self, index: int, fields: Sequence[str], *, decimal_comma: bool = True) -> Column | None:
        """The numbers of a column's fields, in the unit of the first; see `column_of`."""
        if self._units.get(index, _SHARE) != _SHARE:
            fields = [self._bare(index, field) for field in fields]
        return column_of(fields, decimal_comma=decimal_comma)

    def _finds_unit(self, index: int, name: str, field: str) -> bool:
        if not may_be_measured(name):
            return False
        if (told := measured(field)) is not None:
            self._units[index] = told[1]
        elif counted(name, field) is not None:
            self._units[index] = ""
        return index in self._units

    def _bare(self, index: int, field: str) -> str:
        """A field without its unit, in the unit of the column; as it stands where it is something else."""
        unit = self._units[index]
        if not unit:
            count = counted(self._names[index], field)
            return field if count is None else repr(count)
        told = measured(field)
        value = None if told is None else in_unit(*told, unit)
        return field if value is None else repr(value)
