"""Headings of epochs (``Epoch 2/4``) above lines whose steps count inside the epoch and that do not name it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmon.tails.steps import is_training_key, step_rank, words_of

_HEADING = re.compile(
    r"[\s=*#>-]{0,80}(?:starting |start |begin |beginning |training )?"
    r"epoch\b[\s:#=]{0,4}[\[(]?\s?(\d{1,6})(?:\s?(?:/|of)\s?\d{1,6})?"
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
        self._is_first = True

    @property
    def is_open(self) -> bool:
        """Whether the next record is below a heading."""
        return self._epoch is not None

    def hear(self, text: str) -> bool:
        """Whether a line is nothing but a heading."""
        match = _HEADING.fullmatch(text) if len(text) < 200 else None
        if match is not None:
            self._epoch = float(match[1])
        return match is not None

    def on_top(self, values: Values, step: float, before: float | None) -> Values:
        """`values` of a record with `step`, and the epoch that the heading told where it is needed. `before`: the
        step of the record before."""
        if self._epoch is None or not any(map(is_training_key, values)):
            return values
        epoch, self._epoch = self._epoch, None
        is_first, self._is_first = self._is_first, False
        goes_on = not is_first and (before is None or step > before)
        if goes_on or any(step_rank(key) is not None and "epoch" in words_of(key) for key in values):
            return values
        return {**values, "epoch": epoch}
