"""Which run each record of a file belongs to, where one file holds the records of several.

A key that names a run (``run``, ``seed``) tells runs apart when it takes another value and the steps begin anew; where
the steps go on, or go back to a checkpoint, it is the same run under another name. Any other key of words, and any
setting, tells runs apart when it was the same all along and changes at the very record at which the steps begin anew.
The first run is the file's own; what tells the others from it is their label.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from trainmon.tails.formats.run_keys import is_setting, may_tell_runs, names_run, names_start
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

LOOK_AHEAD: Final = 64  # records, to see whether the steps of any run rise while several are written in turn
MOST_RUNS: Final = 100
_MOST_WORDS: Final = 8  # keys of words that are followed while they are the same
_FEWEST_ROWS: Final = 3  # of one value before a change of it tells anything
_MOST_CHANGES: Final = 32  # of what names a run that goes on: then it names something else
_WITHIN: Final = 0.1  # a step so far into the run is no beginning, but a checkpoint's
_VALUE_LIMIT: Final = 60

Words = Mapping[str, "Sequence[str | None] | FloatArray"]
_Identity = tuple[str | None, ...]


@dataclass(slots=True)
class _Run:
    """How far a run is. `rows`: with a step."""

    label: str
    first: float = math.nan
    top: float = -math.inf
    rows: int = 0

    def saw(self, step: float) -> None:
        """Takes in the step of a record."""
        if step == step:
            self.first = step if self.first != self.first else min(self.first, step)
            self.top = max(self.top, step)
            self.rows += 1

    @property
    def rises(self) -> bool:
        """Whether more than one step was seen."""
        return self.top > self.first

    def is_begun_anew_at(self, step: float) -> bool:
        """Whether `step` lies where the run began."""
        return step <= self.first + _WITHIN * (self.top - self.first)


@dataclass(slots=True)
class Placement:
    """What `RunSplit.place` found. `runs`: the run of each record that was `taken`, None when all are of the newest
    one, -1 where there are too many; `begun`: for each run that is new, the record that told of it; `launches`:
    (record, words) where a run begins to be called otherwise."""

    runs: list[int] | None
    taken: int
    begun: list[int] = field(default_factory=list)
    launches: list[tuple[int, str]] = field(default_factory=list)


class RunSplit:
    """Tells runs apart by the records in file order, however they are cut into calls.

    >>> split = RunSplit()
    >>> words = {"seed": ["1", "1", "2", "2"]}
    >>> split.place(words, [0.0, 1.0, 0.0, 1.0]).runs, split.labels
    ([0, 0, 1, 1], ('', 'seed=2'))
    """

    def __init__(self) -> None:
        self.newest = 0
        self.left_out = 0
        self._runs = [_Run("")]
        self._keys: list[str] = []
        self._identity: _Identity = ()
        self._known: dict[_Identity, int] = {(): 0}
        self._renamed: set[_Identity] = set()  # other names of a run that went on
        self._same: dict[str, str] = {}  # what may yet tell runs apart, and its only value so far
        self._starts: dict[str, str] = {}
        self._over: set[str] = set()  # keys that vary within a run
        self._changes = 0
        self._first_label = ""
        self._told = ""  # the first run's label, where the file tells its runs apart by itself

    @property
    def labels(self) -> tuple[str, ...]:
        """The label of each run, "" for the first."""
        return tuple(run.label for run in self._runs)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that tell the runs apart; empty while there is one run."""
        return tuple(self._keys) if len(self._runs) > 1 else ()

    @property
    def first_label(self) -> str:
        """What the first run is called beside the others, by what was known when the second began."""
        return self._told or self._first_label

    def begin(self, label: str) -> int:
        """Another run begins, whose records its file tells apart by itself: from now on no key does. Gives its number,
        -1 when there are too many."""
        if not self._told:
            self._told = label
        elif len(self._runs) < MOST_RUNS:
            self._runs.append(_Run(label))
            self.newest = len(self._runs) - 1
        else:
            self.newest, self.left_out = -1, self.left_out + 1
        return self.newest

    def wants(self, key: str, *, is_number: bool) -> bool:
        """Whether the values of `key` are to be given to `place`."""
        if key in self._over or self._told:
            return False
        if names_run(key) or names_start(key):
            return True
        if is_number:
            return is_setting(key)
        return key in self._same or key in self._keys or (len(self._same) < _MOST_WORDS and may_tell_runs(key))

    def place(
        self, words: Words, steps: Sequence[float] | FloatArray, *, final: bool = True, most: int | None = None
    ) -> Placement:
        """Which run each of the first `most` records belongs to.

        `words`: (n,) values of the keys that are wanted, None or NaN where a record has none; `steps`: (n,), NaN where
        there is none. Where `final` is false, fewer are taken when what comes behind must be seen first.
        """
        count = len(steps) if most is None else most
        changing = {key: column for key, column in words.items() if self._changes_in(key, column)}
        if not changing:
            self._go_on(steps[:count])
            return Placement(None, count)
        out = Placement([], 0)
        assert out.runs is not None
        for at in range(count):
            step = float(steps[at])
            self._hear_starts(changing, at, out)
            self._settle_same(changing, at, step)
            identity = tuple(_word(changing.get(key), at) or now for key, now in self._now())
            if identity != self._identity:
                run = self._run_of(identity, changing, steps, at, out, final=final)
                if run is None:
                    out.taken = at
                    return out
                self.newest = run
                if len(identity) == len(self._keys):  # else: it names no run after all
                    self._identity = identity
            out.runs.append(self.newest)
            if self.newest >= 0:
                self._runs[self.newest].saw(step)
            else:
                self.left_out += 1
        out.taken = count
        return out

    def _now(self) -> list[tuple[str, str | None]]:
        return list(zip(self._keys, self._identity, strict=True))

    def _go_on(self, steps: Sequence[float] | FloatArray) -> None:
        known = np.asarray(steps, np.float64)
        known = known[~np.isnan(known)]
        if not len(known):
            return
        if self.newest < 0:
            self.left_out += len(known)
            return
        run = self._runs[self.newest]
        run.saw(float(known.min()))
        run.saw(float(known.max()))
        run.rows += len(known) - 2

    def _changes_in(self, key: str, column: Sequence[str | None] | FloatArray) -> bool:
        """Whether a value of `key` is another than the last one; a key that is new is met with its first value."""
        now = self._value_of(key)
        if now is None:
            first = next((word for at in range(len(column)) if (word := _word(column, at))), None)
            if first is None:
                return False
            self._meet(key, first)
            now = first
        if isinstance(column, np.ndarray):
            return bool(((column != float(now)) & ~np.isnan(column)).any()) if _is_float(now) else True
        return not set(column) <= {now, None, ""}

    def _value_of(self, key: str) -> str | None:
        if key in self._keys:
            return self._identity[self._keys.index(key)]
        return self._same.get(key) or self._starts.get(key)

    def _meet(self, key: str, first: str) -> None:
        if names_start(key):
            self._starts[key] = first
        elif names_run(key):
            self._add_key(key, first)
        else:
            self._same[key] = first

    def _add_key(self, key: str, value: str) -> None:
        """From now on `key` is part of what names a run; so far it was `value`."""
        self._keys.append(key)
        self._identity = (*self._identity, value)
        self._known = {(*identity, value): run for identity, run in self._known.items()}
        self._renamed = {(*identity, value) for identity in self._renamed}

    def _hear_starts(self, words: Words, at: int, out: Placement) -> None:
        for key, now in self._starts.items():
            word = _word(words.get(key), at)
            if word is not None and word != now:
                self._starts[key] = word
                out.launches.append((at, f"{key} {word[:_VALUE_LIMIT]} after {now[:_VALUE_LIMIT]}"))

    def _settle_same(self, words: Words, at: int, step: float) -> None:
        """A key that was the same all along and is another now tells runs apart, or nothing any more."""
        for key in [key for key in words if key in self._same]:
            word = _word(words[key], at)
            if word is None or word == self._same[key]:
                continue
            now = self._same.pop(key)
            run = self._runs[max(self.newest, 0)]
            if run.rises and run.rows >= _FEWEST_ROWS and step < run.top and run.is_begun_anew_at(step):
                self._add_key(key, now)
            else:
                self._over.add(key)

    def _run_of(
        self,
        identity: _Identity,
        words: Words,
        steps: Sequence[float] | FloatArray,
        at: int,
        out: Placement,
        *,
        final: bool,
    ) -> int | None:
        """The run that is called `identity`; None when the records behind this one must be seen first."""
        known = self._known.get(identity)
        if known is not None:
            if known == self.newest and self._identity in self._renamed and identity not in self._renamed:
                self._known[self._identity] = self._new_run(self._identity, at, out)  # written in turn with the first
                self._renamed.discard(self._identity)
            return known
        step, run = float(steps[at]), self._runs[max(self.newest, 0)]
        if step != step or run.first != run.first:
            return self.newest
        if not run.rises and step <= run.first and not self._any_rises(words, steps, at):
            if not final and len(steps) - at < LOOK_AHEAD:
                return None
            self._known[identity] = self.newest  # a table of results: one record each
        elif run.is_begun_anew_at(step):
            self._known[identity] = self._new_run(identity, at, out)
        else:
            self._known[identity] = self.newest
            self._renamed.add(identity)
            self._changes += 1
            if self._changes <= _MOST_CHANGES:
                out.launches.append((at, self._label(identity, self._identity)))
            else:
                self._forget()
                return self.newest
        return self._known[identity]

    def _any_rises(self, words: Words, steps: Sequence[float] | FloatArray, at: int) -> bool:
        """Whether the steps of any run rise among the records from `at` on."""
        tops = {identity: self._runs[run].top for identity, run in self._known.items() if run >= 0}
        for row in range(at, min(len(steps), at + LOOK_AHEAD)):
            identity = tuple(_word(words.get(key), row) or now for key, now in self._now())
            step = float(steps[row])
            if step > tops.get(identity, math.inf):
                return True
            if step == step:
                tops.setdefault(identity, step)
        return False

    def _new_run(self, identity: _Identity, at: int, out: Placement) -> int:
        if len(self._runs) >= MOST_RUNS:
            return -1
        out.begun.append(at)
        first = next(known for known, run in self._known.items() if run == 0)
        if len(self._runs) == 1:
            self._first_label = self._label(first, ())
        self._runs.append(_Run(self._label(identity, first)))
        return len(self._runs) - 1

    def _label(self, identity: _Identity, other: _Identity) -> str:
        """What tells `identity` from `other`, or all of it."""
        pairs = [
            f"{key}={(value or '')[:_VALUE_LIMIT]}"
            for place, (key, value) in enumerate(zip(self._keys, identity, strict=True))
            if not other or value != other[place]
        ]
        return ",".join(pairs)

    def _forget(self) -> None:
        """What seemed to name a run changes all the time while the run goes on."""
        if len(self._runs) == 1:
            self._over.update(self._keys)
            self._keys, self._identity, self._known, self._renamed = [], (), {(): 0}, set()


def _word(column: Sequence[str | None] | FloatArray | None, at: int) -> str | None:
    if column is None:
        return None
    value = column[at]
    if isinstance(value, str) or value is None:
        return value or None
    return None if value != value else f"{float(value):.15g}"


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
