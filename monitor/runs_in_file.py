"""Several runs in one file: what of a reading belongs to each of them, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trainmon.tails.reader import IntakeItem
from trainmon.tails.record import RUN_IN_FILE, Parsed
from trainmon.tails.text import printable

_SHOWN: Final = 8
_LABEL_LIMIT: Final = 80


def name_of(run: str, label: str) -> str:
    """What the run that is called `label` in the file of `run` is called.

    >>> name_of("sweep.csv", "seed=2"), name_of("sweep.csv", "")
    ('sweep.csv [seed=2]', 'sweep.csv')
    """
    return f"{run} [{printable(label, _LABEL_LIMIT)}]" if label else run


def labels_in(parsed: Parsed) -> list[str]:
    """The labels of the runs that `parsed` tells of, but for the first run's."""
    labels = dict.fromkeys(block.run for block in parsed.blocks if block.run)
    return list(labels | dict.fromkeys(fact.run for fact in parsed.facts if fact.run))


def first_label(parsed: Parsed) -> str:
    """What the first run is called, where `parsed` says so."""
    return next((str(fact.value) for fact in parsed.facts if fact.key == RUN_IN_FILE and not fact.run), "")


def of_run(item: IntakeItem, label: str) -> IntakeItem:
    """What belongs to the run `label`; the first run ("") keeps what was said of the file."""
    parsed = item.update.parsed
    part = Parsed(
        [block for block in parsed.blocks if block.run == label],
        [note for note in parsed.notes if note.run == label],
        [fact for fact in parsed.facts if fact.run == label],
    )
    part.records = sum(len(block) for block in part.blocks)
    if not label:
        part.lines, part.unreadable = parsed.lines, parsed.unreadable
    return replace(item, update=replace(item.update, parsed=part))


def words(labels: Sequence[str], own: str) -> str:
    """What is said of the runs, of which this one is `own`.

    >>> words(["run=a", "run=b"], "run=b")
    '2 runs in one file, by `run`: a, b; this is b, each is judged by itself'
    >>> words(["opt=sgd,seed=1", "seed=2"], "seed=2")
    '2 runs in one file, by `opt`, `seed`: opt=sgd,seed=1, seed=2; this is seed=2, each is judged by itself'
    """
    keys = list(dict.fromkeys(pair.partition("=")[0] for label in labels for pair in label.split(",")))
    names = dict(zip(labels, labels, strict=True))
    if len(keys) == 1:
        names = {label: label.partition("=")[2] for label in labels}
    shown = [printable(names[label], _LABEL_LIMIT) for label in labels]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    by = ", ".join(f"`{printable(key, _LABEL_LIMIT)}`" for key in keys[:3])
    mine = printable(names.get(own, own), _LABEL_LIMIT)
    listed = ", ".join(shown[:_SHOWN])
    return f"{len(labels)} runs in one file, by {by}: {listed}{more}; this is {mine}, each is judged by itself"
