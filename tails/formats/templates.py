"""The shapes learned so far, most recently useful first."""

from __future__ import annotations

from trainmon.tails.formats.template import Reading, Template

_LIMIT = 24


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
        for index, template in enumerate(self._all):
            groups = template.match(text)
            if groups is not None:
                if index > 1:
                    self._all.insert(0, self._all.pop(index))
                return template, template.reading(groups)
        return None
