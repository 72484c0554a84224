"""Lines of one shape whose numbers are as wide as they happen to be: matched whole, their numbers kept for later.

Most numbers need no look at how they are written: what stands between two fixed words is taken as it is, and `float`
says whether it is one. So a line costs a third of what the expression of its template does, with the same result.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainmon.tails.formats.numbers import MULTIPLIERS, to_number, with_multiplier
from trainmon.tails.formats.template import MULTIPLIED, VALUE, Template

if TYPE_CHECKING:
    from trainmon.tails.formats.places import Bulk

_NAN = r"[-+]?[nN][aA][nN]|[-+]?[iI](?:nf(?:inity)?|NF)"
_QUICK = rf"([-+.\deE]++|{_NAN})"  # each number that `float` reads, and what it does not read
# With thousands' commas, or before words that a number could run into; as a template has them.
_DIGITS = r"(?>[-+]?(?:\d+\.?\d*|\.\d+)(?:,\d{3}(?!\d)(?:\.\d+)?)*(?:[eE][-+]?\d+)?)"
_EXACT = rf"({_DIGITS}|{_NAN})"
_EXACT_MULTIPLIED = rf"({_DIGITS}[{''.join(MULTIPLIERS)}])"
_RUN_INTO = frozenset("0123456789+-.eE")


class AnyWidth:
    """Reads lines of `template` behind prefixes of the outline `begin`; what it does not read, the template must.

    `commas`: the places of the values that are written with thousands' commas.

    >>> from trainmon.tails.formats.template import Shape
    >>> shape = Shape([("loss", (12, 15)), ("tokens", (23, 28))], step=(5, 6), step_key="step")
    >>> template = Template("step 5 loss 2.5 tokens 1,204", shape, "generic")
    >>> lines = AnyWidth(template, b"", None, frozenset({2}))
    >>> lines.numbers(b"step 16 loss 1e-3 tokens 12,000,000"), lines.numbers(b"step 6 loss N/A tokens 1,204")
    ([16.0, 0.001, 12000000.0], None)
    """

    __slots__ = ("_at", "_fullmatch", "begin", "bulk", "commas", "fields", "heads", "is_quick", "newest", "template")

    def __init__(self, template: Template, begin: bytes, bulk: Bulk, commas: frozenset[int] = frozenset()) -> None:
        self.template = template
        self.begin = begin
        self.bulk = bulk
        self.commas = commas
        self.heads = template.head_groups
        self.fields = template.field_groups
        self._at = len(begin)
        pattern, self.is_quick = _pattern(template, commas)
        self._fullmatch = re.compile(pattern.encode()).fullmatch
        self.newest = b""  # a line that was read

    @staticmethod
    def may_read(template: Template) -> bool:
        """Whether lines of `template` begin with a word, so that their prefix ends there whatever the numbers are."""
        return bool(template.parts[0].replace(r"\s*", ""))

    def numbers(self, raw: bytes) -> list[float] | None:
        """The numbers of a line, as `heads` and `fields` count them; None when it must be read another way."""
        match = self._fullmatch(raw, self._at)
        if match is None:
            return None
        self.newest = raw
        groups = match.groups()
        try:
            return list(map(float, groups))
        except ValueError:
            return _written_otherwise(groups)


def _pattern(template: Template, commas: frozenset[int]) -> tuple[str, bool]:
    """The expression of `template`, quicker and stricter; whether all between its words is taken as it is."""
    out: list[str] = []
    count = 0
    for part, behind in zip(template.parts, (*template.parts[1:], ""), strict=True):
        if part == MULTIPLIED:
            out.append(_EXACT_MULTIPLIED)
        elif part == VALUE:
            words = behind.lstrip("\\")[:1] if not behind.startswith(r"\s*") else ""
            is_quick = count not in commas and words not in _RUN_INTO and behind.replace(r"\s*", "") != ","
            out.append(_QUICK if is_quick else _EXACT)
        else:
            out.append(part)
        count += part in (MULTIPLIED, VALUE)
    return "".join(out) + r"\s*", all(part == _QUICK for part in out[1::2])


def _written_otherwise(groups: tuple[bytes, ...]) -> list[float] | None:
    """Numbers some of which have commas or a multiplier; None when one is none."""
    numbers: list[float] = []
    for raw in groups:
        text = raw.decode("ascii")
        try:
            number = with_multiplier(text) if text[-1] in MULTIPLIERS else to_number(text)
        except ValueError:
            return None
        if number is None:
            return None
        numbers.append(number)
    return numbers
