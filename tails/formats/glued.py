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
    r".{1,2000}?[\d.](?P<second>(?P=word)\b[\s:=#]{0,3}\d)",
    re.IGNORECASE | re.DOTALL,
)
_OBJECT = lazy(
    r"(?:global[_ ]?)?(?:step|iter(?:ation)?|epoch)\b[\s:=#]{0,3}\d[^{}\"]{1,2000}?[\d.](?P<second>\{\"\w)",
    re.IGNORECASE,
)
_OBJECT_FIRST = lazy(r"(?P<first>\{\"[^{}]{1,4000}\})[^{}]{1,400}\{\"\w")
_NEAR = 120
_LAST_PAIR = re.compile(r"(?:[|,;]\s{0,4})?(?:[A-Za-z_][\w /.()%-]{0,60}?\s{0,4}[:=]?\s{0,4})?[-+.\deE]{1,40}$")
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
    >>> between_writers("step 2 lr 0.5 | loss 2.step 2 lr 0.5 | loss 3.25")
    [Part(text='step 2 lr 0.5 ', is_torn=True), Part(text='step 2 lr 0.5 | loss 3.25', is_torn=False)]
    """
    if "slurmstepd" in text and (match := _DAEMON.search(text)) is not None:
        return [Part(text[: match.start()]), Part(text[match.start() :])]
    if "[rank" in text[1:] and _RANK.search(text) is not None:
        cuts = [0, *(match.start() for match in _RANK.finditer(text)), len(text)]
        parts = [text[begin:end] for begin, end in pairwise(cuts)]
        return [*(Part(_LAST.sub("", part), is_torn=True) for part in parts[:-1]), Part(parts[-1])]
    if (match := _TWICE.match(text)) is not None:
        return _at_seam(text, match.start("second"))
    if text.find('{"', 1) > 0 and (match := _OBJECT.match(text)) is not None:
        return _at_seam(text, match.start("second"))
    if text.startswith('{"') and (match := _OBJECT_FIRST.match(text)) is not None:
        return [Part(text[: match.end("first")]), Part(text[match.end("first") :])]
    return []


def _at_seam(text: str, at: int) -> list[Part]:
    """Two lines without an end between. What stood at the seam may be a number of either one, or parts of both."""
    near = max(at - _NEAR, 0)
    return [Part(text[:near] + _LAST_PAIR.sub("", text[near:at]), is_torn=True), Part(text[at:])]
