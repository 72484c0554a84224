"""Names that differ in their numbers alone, said as one: the keys of forty layers are one measure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_NUMBER: Final = re.compile(r"(?<![0-9])(?<![0-9]\.)([0-9]{1,6})(?!\.?[0-9])")
_FEW: Final = 3  # that many of one shape are folded


def folded(names: Iterable[str]) -> list[str]:
    """One word for each shape of names, in the order of the first of each; fewer than three stand as they are.

    Numbers that run on without a gap are told by their ends, others by a star and how many names there are.

    >>> folded([f"act/layer{layer}/rms" for layer in (0, 1, 10, 11, *range(2, 10))] + ["loss"])
    ['act/layer{0-11}/rms', 'loss']
    >>> folded(["gpu.1.temp", "gpu.4.temp", "gpu.7.temp", "mfu"])
    ['gpu.*.temp (3)', 'mfu']
    >>> folded([f"l{layer}.e{expert}" for layer in range(2) for expert in range(4)])
    ['l{0-1}.e{0-3}']
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(tuple(_NUMBER.split(name)[::2]), []).append(name)
    said: list[str] = []
    for shape, alike in groups.items():
        said += alike if len(shape) == 1 or len(alike) < _FEW else [_one(shape, alike)]
    return said


def told(names: Iterable[str], most: int) -> str:
    """`folded` names with commas between them, the rest counted.

    >>> told(["a", "b", "c0", "c1", "c2", "d"], 3)
    'a, b, c{0-2} and 1 more'
    """
    words = folded(names)
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _one(shape: Sequence[str], names: Sequence[str]) -> str:
    numbers = [{int(each) for each in place} for place in zip(*(_NUMBER.findall(name) for name in names), strict=True)]
    count = 1
    for each in numbers:
        count *= len(each)
    is_whole = count == len(names) and all(max(each) - min(each) + 1 == len(each) for each in numbers)
    words = [shape[0]]
    for each, after in zip(numbers, shape[1:], strict=True):
        one = str(next(iter(each))) if len(each) == 1 else f"{{{min(each)}-{max(each)}}}" if is_whole else "*"
        words += [one, after]
    return "".join(words) + ("" if is_whole else f" ({len(names)})")
