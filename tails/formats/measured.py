"""Strings of structured records that hold a number and its unit: ``"1.25s"``, ``"40.5 GiB"``, ``"55%"``."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import NAME_KEYS
from trainmon.tails.formats.numbers import with_multiplier
from trainmon.tails.formats.run_keys import is_setting, names_run, names_start
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.steps import word_set, words_of

_SECONDS: Final = {
    **dict.fromkeys(("us", "µs"), 1e-6),
    **dict.fromkeys(("ms", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hours"), 3600.0),
}
_BYTES: Final = {
    **{f"{prefix}B": 1e3**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGT", 1)},
}
_FAMILIES: Final = (_SECONDS, _BYTES)
# What a lone letter means (5m, 7B, 4k) is not said; these say it.
_MEASURED = lazy(
    r"\s*([-+]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d{1,20})(?:\.\d{0,20})?(?:[eE][-+]?\d{1,3})?) ?"
    rf"(%|{'|'.join(sorted((*_SECONDS, *_BYTES), key=len, reverse=True))}"
    r"|[KMGTP]?FLOP(?:s|S)?(?:/(?:s|sec|GPU|gpu|device)){0,2}"
    r"|(?:[kKM] ?)?(?:tok|toks|tokens?|samples?|it|iter|examples?|images|seqs?|sequences?)/(?:s|sec|second|GPU|gpu)"
    r"(?:/\w{1,12})?)\s*"
)
_COUNTED = lazy(r"\s*([-+]?\d{1,20}(?:\.\d{0,20})?) ?([kKMBT])\s*")
# Under these words a lone letter is a multiple of what is counted: "1.2M" tokens a second.
_COUNTS: Final = word_set(
    "tok toks token tokens tps sample samples throughput flops flop params parameters examples wps"
)


def measured(text: str) -> tuple[float, str] | None:
    """The number and the unit that a string holds and nothing else; None for any other string.

    >>> measured("1.25s"), measured("40.5 GiB"), measured("55%"), measured("12,345 tok/s")
    ((1.25, 's'), (40.5, 'GiB'), (55.0, '%'), (12345.0, 'tok/s'))
    >>> measured("12.5k tok/s"), measured("12.5 ktok/s")
    ((12.5, 'ktok/s'), (12.5, 'ktok/s'))
    >>> measured("7B"), measured("5m"), measured("1h 30min"), measured("2.5")
    (None, None, None, None)
    """
    if len(text) > 60 or (match := _MEASURED.fullmatch(text)) is None:
        return None
    return float(match[1].replace(",", "")), match[2].replace(" ", "")


def counted(key: str, text: str) -> float | None:
    """The count that a string with a lone letter is, where the key says that something is counted; else None.

    >>> counted("tok_per_sec", "1.2M"), counted("tokens", "350 k"), counted("window", "5k"), counted("tokens", "5m")
    (1200000.0, 350000.0, None, None)
    """
    if len(text) > 60 or (match := _COUNTED.fullmatch(text)) is None or _COUNTS.isdisjoint(words_of(key)):
        return None
    return with_multiplier(match[1] + match[2])


def in_unit(value: float, unit: str, wanted: str) -> float | None:
    """`value`, given in `unit`, in the unit `wanted`; None where one is not the other's.

    >>> in_unit(1.5, "s", "ms"), in_unit(512.0, "MiB", "GiB"), in_unit(1.0, "s", "GiB")
    (1500.0, 0.5, None)
    """
    if unit == wanted:
        return value
    family = next((family for family in _FAMILIES if unit in family and wanted in family), None)
    return None if family is None else value * family[unit] / family[wanted]


@lru_cache(maxsize=4096)
def may_be_measured(key: str) -> bool:
    """Whether words under `key` may be a measurement: not what a record, a metric or a run is called.

    >>> may_be_measured("perf/step_time"), may_be_measured("variant"), may_be_measured("split")
    (True, False, False)
    """
    last = key.rpartition("/")[2]
    is_name = last in NAME_KEYS or last in TYPE_KEYS or last in SPLIT_KEYS
    return not (is_name or names_run(key) or names_start(key) or is_setting(key))
