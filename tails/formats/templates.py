"""The shapes learned so far, most recently useful first."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainmon.tails.formats.template import Reading, Template

_LIMIT = 24
# A word where a number was: ``loss: banana |``, ``loss=***``, ``loss 1.2.3``.
_ODD = re.compile(
    r"\s*[:=]?\s*(?![-+]?(?:nan|inf|none|null|n/a|na)\b)"
    r"(?:[A-Za-z*?#!$%][^\s,|;:=(]{0,40}|\d{1,20}\.\d{1,20}\.[\d.]{1,20})(?=\s*(?:[,|;]|$)|\s+[A-Za-z_][\w/]{0,60}[:=])",
    re.IGNORECASE,
)


class Templates:
    """A bounded list of templates. A line is tried against each; the one that fits moves to the front."""

    def __init__(self) -> None:
        self._all: list[Template] = []
        self.added = 0  # how many there were in all

    def add(self, template: Template) -> None:
        """Keeps a new shape; the one longest unused makes room."""
        self.added += 1
        self._all.insert(0, template)
        del self._all[_LIMIT:]

    def read(self, text: str) -> tuple[Template, Reading] | None:
        """The shape of `text` and what it says, if its shape is known."""
        found = self.find(text)
        return None if found is None else (found[0], found[0].reading(found[1]))

    def find(self, text: str) -> tuple[Template, Sequence[str]] | None:
        """The shape of `text` and its raw values, if its shape is known."""
        for index, template in enumerate(self._all):
            groups = template.match(text)
            if groups is not None:
                if index > 1:
                    self._all.insert(0, self._all.pop(index))
                return template, groups
        return None

    def odd_key(self, text: str, keys: Sequence[str] = ()) -> str:
        """A metric of the shapes that begin as `text` does, which is none of its `keys` and has a word there that is no
        number; "" without one."""
        for template in self._all:
            if not template.opening or not text.startswith(template.opening):
                continue
            for key in template.keys:
                if key in keys:
                    continue
                at = text.find(key.partition(" (")[0], len(template.opening))
                match = _ODD.match(text, at + len(key.partition(" (")[0])) if at >= 0 else None
                if match is not None:
                    return key
        return ""
