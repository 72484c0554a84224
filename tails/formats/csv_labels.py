"""Columns that tell several runs of one table apart become labels behind the keys."""

from __future__ import annotations

from collections.abc import Sequence

from trainmon.tails.formats.csv_header import Header

_HEAD_ROWS = 256
_MOST = 500  # label sets kept apart; what comes after shares one


class Labels:
    """The label of each row: ``{variant=x}`` behind its keys.

    A column with one value in the first `_HEAD_ROWS` rows labels nothing; should another value come later, only its
    rows are labelled.

    >>> labels = Labels(Header.of(["run", "step", "loss"]))
    >>> labels.settle([["a", "1", "2.5"]], final=False), labels.settle([["a", "1", "2"], ["b", "1", "3"]], final=False)
    (False, True)
    >>> labels.suffixes([("a", "b"), ("1", "1"), ("2", "3")])
    ['{run=a}', '{run=b}']
    """

    def __init__(self, header: Header | None = None) -> None:
        self._columns = header.labels if header is not None else ()
        self._names = header.names if header is not None else ()
        self._silent: dict[int, str] = {}
        self._known: dict[tuple[str, ...], str] = {}

    def settle(self, rows: Sequence[Sequence[str]], *, final: bool) -> bool:
        """Decides by the first rows which columns label; False when more rows must be seen."""
        single = {index: {row[index] for row in rows[:_HEAD_ROWS]} for index in self._columns}
        single = {index: values for index, values in single.items() if len(values) < 2}
        if single and len(rows) < _HEAD_ROWS and not final:
            return False
        self._silent = {index: next(iter(values)) for index, values in single.items()}
        return True

    def suffixes(self, table: Sequence[Sequence[str]]) -> list[str] | None:
        """(n,) the labels of the rows, `table` column by column; None when the table has no labels."""
        if not self._columns:
            return None
        known = self._known
        out = []
        for values in zip(*(table[index] for index in self._columns), strict=True):
            suffix = known.get(values)
            if suffix is None:
                suffix = self._make(values)
                if len(known) >= _MOST and suffix:
                    suffix = "{others}"
                else:
                    known[values] = suffix
            out.append(suffix)
        return out

    def _make(self, values: Sequence[str]) -> str:
        parts = [
            f"{self._names[index]}={_safe(value)}"
            for index, value in zip(self._columns, values, strict=True)
            if value and self._silent.get(index) != value
        ]
        return "{" + ",".join(parts) + "}" if parts else ""


def _safe(text: str) -> str:
    return text[:120].translate({ord("{"): "(", ord("}"): ")", ord("="): "-", ord(","): " "})
