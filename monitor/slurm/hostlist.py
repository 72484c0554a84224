"""Slurm's short form of many node names: ``gpu[01-03,7],login1``."""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy

_PART = lazy(r"([^\[\],]*)\[([0-9,-]+)\]([^\[\],]*)|([^\[\],]+)")


def expanded(text: str, most: int = 1024) -> list[str]:
    """The names, in order; at most `most`. What is not understood is kept as it is.

    >>> expanded("gpu[01-03,7]-ib,login1")
    ['gpu01-ib', 'gpu02-ib', 'gpu03-ib', 'gpu7-ib', 'login1']
    >>> expanded("(null)"), expanded("")
    ([], [])
    """
    names: list[str] = []
    for found in _PART.finditer(text[:65_536]):
        before, ranges, after, single = found.groups()
        if single is not None:
            names += [] if single.strip() in ("", "(null)", "None assigned") else [single.strip()]
            continue
        for piece in ranges.split(","):
            first, _, last = piece.partition("-")
            if not first.isdigit() or not (last.isdigit() or not last):
                continue
            end = int(last or first)
            for number in range(int(first), min(end, int(first) + most) + 1):
                names.append(f"{before}{number:0{len(first)}d}{after}")
        if len(names) > most:
            break
    return names[:most]
