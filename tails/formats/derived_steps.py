"""The steps of records that name only their epoch, from how often the log says it logs and how long the run is."""

from __future__ import annotations

import math
from collections.abc import Mapping

FROM_INTERVAL = "derived from logging_steps"
FROM_EPOCH = "derived from epoch"
DERIVED = (FROM_INTERVAL, FROM_EPOCH)
_PRINTED = 2  # decimals to which trainers round the epoch, at the least
_FARTHEST = 1e6  # epochs; a data set without a length is said to have more
_LARGEST = 1e12  # no count of steps or examples is larger
_NEAR = 0.02
Facts = Mapping[str, float | str]


class DerivedSteps:
    """Gives records their step, in file order: by the logging interval, held against the epoch where its length is
    known, or by the epoch alone.

    >>> steps = DerivedSteps()
    >>> [steps.of(epoch, {"logging_steps": 10.0}) for epoch in (0.02, 0.05)]
    [(10.0, 'derived from logging_steps'), (20.0, 'derived from logging_steps')]
    >>> DerivedSteps().of(0.99, {"num_train_epochs": 2.0, "total_steps": 812.0})
    (402.0, 'derived from epoch')
    >>> DerivedSteps().of(0.99, {"total_steps": 812.0}) is None
    True
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._epoch = 0.0
        self._decimals = _PRINTED

    def of(self, epoch: float | None, facts: Facts) -> tuple[float, str] | None:
        """The step of the next record and what it was derived from; None where neither interval nor length is known.

        `facts`: what is known so far, in the order in which the log said it.
        """
        if epoch is None or not 0 <= epoch < _FARTHEST:
            return None
        self._decimals = max(self._decimals, len(repr(epoch).partition(".")[2]))
        interval, length = _interval(facts), steps_per_epoch(facts)
        if length is None and (interval is None or (not self._last and epoch == int(epoch) > 0)):
            return None  # whole epochs from the first on: it does not log by steps
        unit = 10.0**-self._decimals
        is_back = epoch < self._epoch - unit
        if is_back and length is None:
            length = self._last / self._epoch
        step = self._step(epoch, interval, length, unit, is_back=is_back)
        self._last, self._epoch = step, epoch
        return step, FROM_EPOCH if interval is None else FROM_INTERVAL

    def _step(self, epoch: float, interval: float | None, length: float | None, unit: float, *, is_back: bool) -> float:
        next_step = self._last + 1 if interval is None else (self._last // interval + 1) * interval
        if length is None:
            return next_step
        by_epoch, blur = epoch * length, unit * length
        if interval is not None and not is_back and abs(next_step - by_epoch) <= blur + interval / 2:
            return next_step
        nearest = max(round(by_epoch), 1.0)
        if interval is not None:
            on_time = round(by_epoch / interval) * interval
            nearest = on_time if on_time and abs(on_time - by_epoch) <= blur else nearest
        if is_back or nearest > self._last:
            return float(nearest)
        return next_step if next_step <= by_epoch + blur else self._last


def steps_per_epoch(facts: Facts) -> float | None:
    """How many steps an epoch has; None where that is not known.

    A number of epochs that was said before the steps made their number; said after them it may be rounded up from a
    part of one, and only the number of examples tells.

    >>> steps_per_epoch({"num_train_epochs": 2.0, "total_steps": 812.0})
    406.0
    >>> steps_per_epoch({"total_steps": 100.0, "num_train_epochs": 1.0}) is None
    True
    >>> steps_per_epoch({"num_examples": 64000.0, "num_train_epochs": 1.0, "batch_size": 64.0, "total_steps": 100.0})
    1000.0
    """
    total, epochs = _number(facts, "total_steps"), _number(facts, "num_train_epochs")
    examples, batch = _number(facts, "num_examples"), _number(facts, "batch_size")
    by_epochs = total / epochs if total is not None and epochs is not None and epochs < _FARTHEST else None
    if examples is not None and batch is not None:
        by_examples = examples / batch
        if by_epochs is not None and abs(by_epochs - by_examples) <= 1 + _NEAR * by_examples:
            return by_epochs
        return by_examples if by_examples >= 1 else None
    names = list(facts)
    if by_epochs is None or names.index("num_train_epochs") > names.index("total_steps"):
        return None
    return by_epochs


def _interval(facts: Facts) -> float | None:
    """Steps between two records; below 1 it is said as a share of the run."""
    interval, total = _number(facts, "logging_steps"), _number(facts, "total_steps")
    if interval is not None and interval < 1:
        return math.ceil(interval * total) if total is not None else None
    return interval


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return value if isinstance(value, float) and 0 < value < _LARGEST else None
