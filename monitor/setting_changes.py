"""Which settings a run changed on its way: facts that another attempt, or the same file later on, tells otherwise."""

from __future__ import annotations

from typing import Final

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import Fact

_MOST: Final = 200  # a log that tells another value with every line tells no settings
_MOST_OF_ONE: Final = 24


@dataclass(frozen=True, slots=True)
class SettingChange:
    """From `step`, the first one trained with it, the setting `name` is `after` where it was `before`."""

    step: float
    name: str
    before: float | str
    after: float | str


@dataclass(slots=True)
class _Pending:
    name: str
    before: float | str
    after: float | str
    attempt: int
    same_source: bool


class SettingChanges:
    """Hears facts and training rows in the order of the log.

    Two files of one attempt may well call different things by one name, so that a change within an attempt counts only
    where one file tells both values.

    >>> changes = SettingChanges()
    >>> changes.fact(Fact("a.log", 1, "batch_size", 64.0), None, 0)
    >>> changes.rows(0, 1.0)
    >>> changes.fact(Fact("b.log", 1, "batch_size", 128.0), 64.0, 0)
    >>> changes.rows(1, 500.0)
    >>> changes.found
    [SettingChange(step=500.0, name='batch_size', before=64.0, after=128.0)]
    """

    def __init__(self) -> None:
        self.found: list[SettingChange] = []
        self._sources: dict[str, str] = {}  # of each setting's newest value
        self._pending: dict[str, _Pending] = {}
        self._has_rows = False

    def fact(self, fact: Fact, before: float | str | None, attempts: int) -> None:
        """`before`: the value so far, None where there is none; `attempts`: how many have begun, less one."""
        source = self._sources.get(fact.key)
        self._sources[fact.key] = fact.source
        if before is None or not self._has_rows:
            return
        waiting = self._pending.pop(fact.key, None)
        was = waiting.before if waiting is not None else before
        if fact.value != was:
            self._pending[fact.key] = _Pending(fact.key, was, fact.value, attempts, source == fact.source)

    def rows(self, attempt: int, step: float) -> None:
        """Training goes on in `attempt` at `step`."""
        self._has_rows = True
        if not self._pending:
            return
        for one in self._pending.values():
            told = sum(change.name == one.name for change in self.found)
            if (attempt > one.attempt or one.same_source) and told < _MOST_OF_ONE and len(self.found) < _MOST:
                self.found.append(SettingChange(step, one.name, one.before, one.after))
        self._pending.clear()
