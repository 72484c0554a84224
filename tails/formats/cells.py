"""Values of structured records: what is a number, what is text, and nested values laid flat.

Nested objects become ``outer/inner``; lists of numbers ``key[0]``, ``key[1]``; lists of more than `LIST_LIMIT` values
are left out (token ids, histograms). Booleans are no numbers. Whether a string or a null of a key counts is settled
by the first value the key had: a key that began as text stays text, and only real numbers under it count. Strings of
a number and its unit count under the key with the unit of the first behind it, ``key (unit)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

from trainmon.tails.formats.measured import counted, in_unit, may_be_measured, measured
from trainmon.tails.formats.numbers import c_runtime_number
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.samples import scores_of
from trainmon.tails.steps import WEAK_RANK, step_rank

LIST_LIMIT = 512
KEY_LIMIT = 20_000
_KEY_LENGTH = 300
_DEPTH = 12
_NAMES = ("name", "key", "metric", "tag", "metric_name")
_VALUES = ("value", "val", "metric_value", "simple_value")
_NUMERIC = lazy(
    r"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|[nN]a[nN]|NAN|[iI]nf(?:inity)?|INF(?:INITY)?)\s*"
)
_THOUSANDS = lazy(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_TEXT_LIMIT = 500
_PLACE = lazy(r"\s*(\d{1,12})\s*/\s*(\d{1,12})\s*")
_PLACE_LIMIT = 60
_TOTAL = "total_steps"


def number_in(text: str) -> float | None:
    """The number that a string holds and nothing else; None when it holds none.

    >>> number_in("0.5"), number_in("-Infinity"), number_in("1:03"), number_in("1_000"), number_in("12,000")
    (0.5, -inf, None, None, 12000.0)
    """
    if len(text) > 400:
        return None
    if _NUMERIC.fullmatch(text) is not None:
        return float(text)
    return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) is not None else c_runtime_number(text)


def as_float(value: float) -> float:
    """`value` as a float; integers beyond its range become infinite.

    >>> as_float(-(10**400))
    -inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _leaves(value: object, limit: int) -> int:
    """How many values a nested list holds; stops counting beyond `limit`."""
    if not isinstance(value, list | tuple):
        return 1
    count = 0
    for inner in value:
        count += _leaves(inner, limit - count)
        if count > limit:
            break
    return count


def _named_values(values: list[Any] | tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The entries of ``[{"name": "loss", "value": 2.5}, ...]``; none where the list is something else."""
    named: list[tuple[str, Any]] = []
    for one in values[: LIST_LIMIT + 1]:
        if not isinstance(one, dict):
            return []
        name = next((one[key] for key in _NAMES if isinstance(one.get(key), str)), None)
        value = next((key for key in _VALUES if key in one), None)
        if name is None or value is None:
            return []
        named.append((name, one[value]))
    return named if len(named) <= LIST_LIMIT else []


def _with_unit(key: str, unit: str) -> str:
    """The key with its unit, which it may name itself: ``time_ms``."""
    return key if not unit or key.lower().endswith(f"_{unit.lower()}") else f"{key} ({unit})"


def place_of(key: str, text: str) -> tuple[float, float] | None:
    """The step and how many there will be, of a step that is told as ``12/300``; None for anything else.

    >>> place_of("step", " 12/ 300"), place_of("epoch", "1/3"), place_of("step", "3/2")
    ((12.0, 300.0), None, None)
    """
    if len(text) > _PLACE_LIMIT or (match := _PLACE.fullmatch(text)) is None:
        return None
    rank, step, total = step_rank(key), float(match[1]), float(match[2])
    return (step, total) if rank is not None and rank < WEAK_RANK and step <= total else None


class Kind(Enum):
    """What the first value of a key was: a null alone does not say."""

    UNKNOWN = 0
    NUMBER = 1
    TEXT = 2
    MEASURED = 3  # strings with a unit


class KeyTable:
    """The keys of one source and what they began as; at most `KEY_LIMIT` of them, later ones are not kept."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}
        self._units: dict[str, str] = {}  # of each key that began with one
        self.texts_found = 0  # how often a key that had only nulls turned out to be text

    def cell(self, key: str, value: object, put: Callable[[str, float | None], None]) -> bool:
        """Hands the number (None for a logged null) that scalar `value` stands for to `put`.

        Returns False when the value is text, or a boolean, and no number.
        """
        kind = self.kinds.get(key)
        if kind is None:
            if len(self.kinds) >= KEY_LIMIT or len(key) > _KEY_LENGTH:
                return True
            kind = self.kinds[key] = Kind.UNKNOWN
        if isinstance(value, bool):
            self._settle(key, kind, Kind.TEXT)
            return False
        if isinstance(value, int | float):
            self._settle(key, kind, Kind.NUMBER)
            put(key, as_float(value))
            return True
        if value is None:
            if kind is not Kind.TEXT:
                put(_with_unit(key, self._units[key]) if kind is Kind.MEASURED else key, None)
            return True
        number = number_in(value) if isinstance(value, str) and kind is not Kind.TEXT else None
        if number is None:
            return self._measured(key, kind, value, put)
        self._settle(key, kind, Kind.NUMBER)
        put(key, number)
        return True

    def _measured(self, key: str, kind: Kind, value: object, put: Callable[[str, float | None], None]) -> bool:
        """As `cell`, of a value that is no bare number."""
        is_open = kind in (Kind.UNKNOWN, Kind.MEASURED) and may_be_measured(key)
        told = measured(value) if is_open and isinstance(value, str) else None
        if told is None and is_open and isinstance(value, str) and (count := counted(key, value)) is not None:
            told = count, ""
        if told is None and is_open and isinstance(value, str) and (place := place_of(key, value)) is not None:
            told = place[0], ""
            put(_TOTAL, place[1])
        if told is None:
            self._settle(key, kind, Kind.TEXT)
            return False
        number, unit = told
        self._settle(key, kind, Kind.MEASURED)
        own = self._units.setdefault(key, unit)
        if (converted := in_unit(number, unit, own)) is None:
            return False
        put(_with_unit(key, own), converted)
        return True

    def _settle(self, key: str, kind: Kind, found: Kind) -> None:
        if kind is Kind.UNKNOWN:
            self.kinds[key] = found
            self.texts_found += found is Kind.TEXT

    def flatten(
        self, key: str, value: object, put: Callable[[str, float | None], None], texts: dict[str, str] | None
    ) -> None:
        """Lays `value` flat: numbers and nulls to `put`, strings to `texts` (cut short)."""
        self._flatten(key, value, put, texts, 0)

    def _flatten(
        self, key: str, value: Any, put: Callable[[str, float | None], None], texts: dict[str, str] | None, depth: int
    ) -> None:
        if isinstance(value, dict):
            if depth < _DEPTH:
                for name, inner in value.items():
                    self._flatten(f"{key}/{name}" if key else str(name), inner, put, texts, depth + 1)
        elif isinstance(value, list | tuple):
            if depth < _DEPTH and (named := _named_values(value)):
                for name, inner in named:
                    self._flatten(f"{key}/{name}", inner, put, None, depth + 1)
            elif depth < _DEPTH and _leaves(value, LIST_LIMIT) <= LIST_LIMIT:
                for index, inner in enumerate(value):
                    if not isinstance(inner, str):
                        self._flatten(f"{key}[{index}]", inner, put, None, depth + 1)
        elif not self.cell(key, value, put) and texts is not None and isinstance(value, str):
            texts[key] = value[:_TEXT_LIMIT]

    def row(self, record: dict[str, Any]) -> tuple[dict[str, float | None], dict[str, str]]:
        """One record laid flat: its numbers and nulls, and its texts.

        >>> KeyTable().row({"loss": 2, "opt": {"lr": "1e-4"}, "load": [3, 4], "done": True, "note": "x", "eval": None})
        ({'loss': 2.0, 'opt/lr': 0.0001, 'load[0]': 3.0, 'load[1]': 4.0, 'eval': None}, {'note': 'x'})
        """
        values: dict[str, float | None] = {}
        texts: dict[str, str] = {}
        for key, value in record.items():
            self._flatten(key, value, values.__setitem__, texts, 1)
        for key, score in scores_of(record).items():
            self.cell(key, score, values.__setitem__)
        return values, texts
