"""Sources whose place says that they are held-out: ``validation/`` beside ``train/``, ``val.csv``, ``loss_val/``.

Keras writes one directory of event files for each data set and the same tags in both, SummaryWriter's `add_scalars`
one for each line of a chart, others one table for each: only the place tells whose numbers they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from trainmon.monitor.mapping import Mapped
from trainmon.monitor.run import KeyMapper
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.steps import says_eval, words_of

_VALIDATION = frozenset(("validation", "val", "valid", "validate", "eval", "evaluation", "dev", "heldout", "holdout"))
_TEST = frozenset(("test", "testing", "ood"))
_TRAIN = frozenset(("train", "training"))
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
_NAMED_BY_THEIR_WRITER = lazy(r".*tfevents.*|.*\.wandb", re.DOTALL)  # with the name of the host
_HINT = lazy(r"val|dev|held|hold|test|ood", re.IGNORECASE)  # in each of the words
_TOKENS = lazy(r"[^._\- ]+")


@dataclass(frozen=True, slots=True)
class _Said:
    """What the words of a place say: its held-out set ("" none), and whether it is the training's own."""

    held_out: str = ""
    is_train: bool = False


def held_out_set(source: str, others: Sequence[str]) -> str:
    """The word by which the place of `source` says that it is held-out, "" where it is not.

    `others`: the run's other sources. Without one that is not held-out the word is only a name. A text log, and the
    word "test", which names many a first try, count only beside a place that says it is the training's.

    >>> held_out_set("tb/validation/events.out.tfevents.1.a", ["tb/train/events.out.tfevents.1.a"])
    'validation'
    >>> held_out_set("r/metrics_val.csv", ["r/metrics.csv"]), held_out_set("r/test.csv", ["r/metrics.csv"])
    ('val', '')
    """
    if not others or _HINT.search(source) is None:
        return ""
    shared = _common_folder(tuple(sorted((source, *others))))
    mine = _said(source, shared)
    if not mine.held_out or mine.is_train:
        return ""
    beside = [_said(other, shared) for other in others]
    is_weak = mine.held_out in _TEST or not _is_metrics(source)
    counterparts = [said for said in beside if not said.held_out and (said.is_train or not is_weak)]
    return mine.held_out if counterparts else ""


def set_label(source: str, known: Sequence[str]) -> str:
    """What tells the set of `source` from another held-out set of the run: its word, "" for the first of them."""
    words = {path: held_out_set(path, [other for other in known if other != path]) for path in known}
    first = next((word for word in words.values() if word), "")
    return "" if words[source] == first else words[source]


@lru_cache(maxsize=16)
def _common_folder(paths: tuple[str, ...]) -> PurePosixPath:
    try:
        return PurePosixPath(os.path.commonpath([str(PurePosixPath(path).parent) for path in paths]))
    except ValueError:  # some from the root, some not
        return PurePosixPath()


def _said(source: str, shared: PurePosixPath) -> _Said:
    """What the part of the path that is its own says; the nearest folder goes before those above it."""
    path = PurePosixPath(source)
    folders = path.parent.parts[len(shared.parts) if path.is_relative_to(shared) else 0 :]
    if not _NAMED_BY_THEIR_WRITER.fullmatch(path.name.lower()):
        tokens = _TOKENS.findall(path.stem.lower())
        said = _of_words(tokens[:1] + tokens[-1:], tokens)
        if said.held_out or said.is_train:
            return said
    for folder in reversed(folders):
        tokens = _TOKENS.findall(folder.lower())
        said = _of_words(tokens[-1:], tokens)
        if said.held_out or said.is_train:
            return said
    return _Said()


def _of_words(at_the_ends: Sequence[str], words: Sequence[str]) -> _Said:
    held_out = next((word for word in at_the_ends if word in _VALIDATION or word in _TEST), "")
    return _Said(held_out, is_train=not _TRAIN.isdisjoint(words))


def _is_metrics(source: str) -> bool:
    name = PurePosixPath(source).name.lower()
    return name.endswith(_TABLES) or _NAMED_BY_THEIR_WRITER.fullmatch(name) is not None


class HeldOutMapper:
    """Maps the keys of a held-out source: what its name leaves open was measured on that set.

    A key that says itself whose it is keeps its meaning. `label`: the set's name, "" where there is but one.
    """

    def __init__(self, mapper: KeyMapper, label: str = "") -> None:
        self._mapper = mapper
        self._suffix = f"{{set={label}}}" if label else ""
        self._taken: set[str] = set()

    def claim(self, keys: Sequence[str]) -> dict[str, Mapped]:
        """As `Mapper.claim`."""
        names = {raw: self._name(raw) for raw in keys}
        claimed = self._mapper.claim(list(names.values()))
        return {raw: claimed[name] for raw, name in names.items()}

    def _name(self, raw: str) -> str:
        if says_eval(raw) or not _TRAIN.isdisjoint(words_of(raw)):
            name = raw + ("" if raw.endswith("}") else self._suffix)
        else:
            name = "eval/" + raw.removeprefix("epoch_") + ("" if raw.endswith("}") else self._suffix)
        if name in self._taken:
            name = f"eval/{raw}"
        self._taken.add(name)
        return name
