"""Headings of epochs (``Epoch 2/4``) above lines whose steps count inside the epoch and that do not name it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from trainmon.tails.steps import is_training_key, step_rank, words_of

_HEADING = re.compile(
    r"[\s=*#>-]{0,80}(?:starting |start |begin |beginning |training )?"
    r"epoch\b[\s:#=]{0,4}[\[(]?\s?(\d{1,6})(?:\s?(?:/|of)\s?(\d{1,6}))?"
    r"[\])]?(?:\s?(?:start(?:s|ed|ing)?|begins?))?[\s=*#<:.-]{0,80}",
    re.IGNORECASE,
)
Values = Mapping[str, float | None]


class EpochHeading:
    """The newest heading, until the first training record below it.

    Only a record that needs it takes the epoch: the first one of all, and one whose step does not go on.

    >>> heading = EpochHeading()
    >>> [heading.hear(text) for text in ("== Epoch 1/4 ==", "epoch 1 took 5 s")]
    [True, False]
    >>> heading.on_top({"loss": 2.5}, 1.0, None)
    {'loss': 2.5, 'epoch': 1.0}
    """

    def __init__(self) -> None:
        self._epoch: float | None = None
        self._newest = math.inf  # the epoch of the newest record that a heading stood over
        self._epochs: float | None = None
        self._is_first = True
        self._counts_within: bool | None = None  # whether steps begin anew with each epoch; None: not yet known

    @property
    def is_open(self) -> bool:
        """Whether the next record is below a heading."""
        return self._epoch is not None

    def hear(self, text: str) -> bool:
        """Whether a line is nothing but a heading."""
        match = _HEADING.fullmatch(text) if len(text) < 200 else None
        if match is not None:
            self._epoch, self._epochs = float(match[1]), float(match[2]) if match[2] else self._epochs
        return match is not None

    def on_top(self, values: Values, step: float, before: float | None) -> Values:
        """`values` of a record with `step`, and the epoch that the heading told where it is needed. `before`: the
        step of the record before."""
        if self._epoch is None or not any(map(is_training_key, values)):
            return values
        epoch, self._epoch = self._epoch, None
        is_first, self._is_first = self._is_first, False
        goes_on = not is_first and (before is None or step > before)
        if epoch > self._newest and before is not None:
            self._counts_within = not goes_on
        self._newest = epoch
        if goes_on or any(step_rank(key) is not None and "epoch" in words_of(key) for key in values):
            return values
        return {**values, "epoch": epoch}

    def whole(self, total: float) -> float | None:
        """All steps of the run, where `total` stands behind the slash of a step below a heading; None while it is not
        known whether that counts one epoch or all.

        >>> heading = EpochHeading()
        >>> heading.whole(20.0), heading.hear("Epoch 1/3"), heading.on_top({"loss": 2.5}, 1.0, None)["epoch"]
        (20.0, True, 1.0)
        >>> heading.whole(20.0), heading.hear("Epoch 2/3"), heading.on_top({"loss": 2.5}, 1.0, 20.0)["epoch"]
        (None, True, 2.0)
        >>> heading.whole(20.0)
        60.0
        """
        if self._epochs is None or self._epochs <= 1 or self._counts_within is False:
            return total
        return total * self._epochs if self._counts_within else None
