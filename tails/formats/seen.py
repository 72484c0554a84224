"""Which JSON types the values of a key had: what a plan for decoding is made from."""

from __future__ import annotations

from collections.abc import Iterator

from trainmon.tails.formats.cells import KEY_LIMIT
from trainmon.tails.quick_dataclass import dataclass

_DEPTH_LIMIT = 8


@dataclass(slots=True)
class Seen:
    """The types of one key's values; `inner` holds the keys of the objects that stood there."""

    number: bool = False
    text: bool = False
    truth: bool = False
    null: bool = False
    listed: bool = False
    inner: dict[str, Seen] | None = None

    @property
    def only_inner(self) -> bool:
        """Whether nothing but objects stood there."""
        return self.inner is not None and not (self.number or self.text or self.truth or self.null or self.listed)

    def add(self, value: object, depth: int = 0) -> bool:
        """Takes in a value; whether that was news."""
        if isinstance(value, dict):
            news = self.inner is None
            if self.inner is None:
                self.inner = {}
            return (depth < _DEPTH_LIMIT and learn(self.inner, value, depth + 1)) or news
        name = _type_name(value)
        news = not getattr(self, name)
        setattr(self, name, True)
        return news


def levels(seen: dict[str, Seen]) -> Iterator[dict[str, Seen]]:
    """The keys of a record's own level, and of each object in it."""
    yield seen
    for one in seen.values():
        if one.inner is not None:
            yield from levels(one.inner)


def learn(seen: dict[str, Seen], record: dict[str, object], depth: int = 0) -> bool:
    """Takes in the types of a record, of at most `KEY_LIMIT` keys; whether any was news.

    >>> seen = {}
    >>> learn(seen, {"loss": 1.5, "opt": {"lr": None}}), learn(seen, {"loss": 2})
    (True, False)
    >>> seen["loss"].number, seen["opt"].inner["lr"].null
    (True, True)
    """
    news = False
    for key, value in record.items():
        types = seen.get(key)
        if types is None:
            if len(seen) >= KEY_LIMIT:
                continue
            types = seen[key] = Seen()
            news = True
        news = types.add(value, depth) or news
    return news


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) else "listed"
