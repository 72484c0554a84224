"""Whether a rate is the whole run's or one card's: logs print either, and a reader must see which."""

from __future__ import annotations

from trainmon.monitor.per_card import is_per_card
from trainmon.monitor.snapshot import RunSnapshot, SeriesView

PER_CARD = "/GPU"
_RATES = frozenset(("sys.tokens_per_second", "sys.samples_per_second"))


def of_one_card(run: RunSnapshot, view: SeriesView) -> bool:
    """Whether `view` is a rate that the log of `run` tells of one card."""
    return view.key.signal in _RATES and is_per_card(view.raw_key, run.facts)


def unit_of(run: RunSnapshot, view: SeriesView) -> str:
    """The unit of `view`: that of its signal, with "/GPU" where the rate is of one card."""
    return view.unit + PER_CARD if of_one_card(run, view) else view.unit
