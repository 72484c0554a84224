"""Lines into which two processes wrote: Slurm's daemon in the middle of one, or two ranks that share a file."""

from __future__ import annotations

import re
from itertools import pairwise

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

# With the node's name behind it since 20.11 or so.
_DAEMON = lazy(r"(?<=.)slurmstepd(?:-[\w.-]{1,80})?: error:", re.DOTALL)
_RANK = lazy(r"(?<=[\w.)%+-])\[rank[-_ =]?\d{1,6}\]:", re.IGNORECASE)
_TWICE = lazy(
    r"(?:\s*\[rank\d{1,6}\]:){0,8}\s*(?P<word>(?:global[_ ]?)?(?:step|iter(?:ation)?|epoch))\b"
    r".{1,2000}?[\d.](?P=word)\b[\s:=#]{0,3}\d",
    re.IGNORECASE | re.DOTALL,
)
_LAST = re.compile(r"[-+.\deE]+$")


@dataclass(slots=True)
class Part:
    """What one process wrote. `is_torn`: a number at its end may not be whole, and is left out."""

    text: str
    is_torn: bool = False


def between_writers(text: str) -> list[Part]:
    """What each process wrote into the line; empty when there is but one, as far as can be told.

    >>> [part.text for part in between_writers("[rank0]: step 2 loss 2.[rank1]: step 2 loss 3.25")]
    ['[rank0]: step 2 loss ', '[rank1]: step 2 loss 3.25']
    >>> between_writers("step 2 loss 2.5step 2 loss 3.25")
    [Part(text='', is_torn=True), Part(text='', is_torn=False)]
    """
    if "slurmstepd" in text and (match := _DAEMON.search(text)) is not None:
        return [Part(text[: match.start()]), Part(text[match.start() :])]
    if "[rank" in text[1:] and _RANK.search(text) is not None:
        cuts = [0, *(match.start() for match in _RANK.finditer(text)), len(text)]
        parts = [text[begin:end] for begin, end in pairwise(cuts)]
        return [*(Part(_LAST.sub("", part), is_torn=True) for part in parts[:-1]), Part(parts[-1])]
    if _TWICE.match(text) is not None:
        return [Part("", is_torn=True), Part("")]
    return []
