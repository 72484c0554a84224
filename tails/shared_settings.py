"""Settings that several runs inherit: read once, for the run that the file was found for first, and told to all."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from trainmon.tails.reader import IntakeItem


class SharedSettings:
    """Gives the items of a settings file to the runs that inherit it besides the one that owns it. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heirs: dict[str, list[str]] = {}
        self._last: dict[str, IntakeItem] = {}
        self._due: list[IntakeItem] = []

    def share(self, path: Path, run_name: str) -> None:
        """From now on `run_name` inherits the file too; it is told what was read of it before."""
        with self._lock:
            self._heirs.setdefault(str(path), []).append(run_name)
            if str(path) in self._last:
                self._due.append(replace(self._last[str(path)], run_name=run_name))

    def told(self, items: Iterable[IntakeItem]) -> list[IntakeItem]:
        """`items`, those of settings once for each run, behind what is due to runs that were found since."""
        with self._lock:
            found, self._due = self._due, []
            for item in items:
                found.append(item)
                if item.role != "config":
                    continue
                if item.config is not None:
                    self._last[item.path] = item
                found += [replace(item, run_name=name) for name in self._heirs.get(item.path, ())]
        return found
