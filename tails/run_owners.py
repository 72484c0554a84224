"""Which run owns each file that is read: runs keep their names and files while searches find more of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainmon.tails.discover import RunFile, RunFiles
from trainmon.tails.naming import name_runs
from trainmon.tails.numbered_documents import shape_of
from trainmon.tails.scan import CHECKPOINT

_STATE = "trainer_state.json"


class RunOwners:
    """The runs by name, in the order they were found. Not locked: the owner does that."""

    def __init__(self, cwd: Path) -> None:
        self.runs: dict[str, RunFiles] = {}
        self._cwd = cwd
        self._owner: dict[Path, str] = {}

    def paths_of(self, names: frozenset[str]) -> frozenset[Path]:
        """The files of these runs."""
        return frozenset(path for path, name in self._owner.items() if name in names)

    def take(self, run: RunFiles, move: Callable[[Path, Path], None]) -> tuple[str, list[RunFile], list[RunFile]]:
        """The name under which `run`, as a search found it, is known; those of its files that nobody owns yet; and the
        settings that it inherits from now on, and that another run owns.

        `move` is called for a checkpoint's state with the path of the older one that it takes the place of.
        """
        name = self._known_name(run)
        fresh = [file for file in run.files if file.path not in self._owner]
        if name is None:
            name = self._free_name(run)
            self.runs[name] = RunFiles(name, run.target, ())
        fresh = [file for file in fresh if not self._supersedes(name, run, file, move)]
        known = self.runs[name]
        has = {file.path for file in (*known.files, *fresh)}
        shared = [file for file in run.files if file.role == "config" and file.path not in has]
        self.runs[name] = RunFiles(name, known.target, (*known.files, *fresh, *shared))
        self._owner.update((file.path, name) for file in fresh)
        return name, fresh, shared

    def _known_name(self, run: RunFiles) -> str | None:
        logs = [file.path for file in run.files if file.role != "config"]
        return next((self._owner[path] for path in logs if path in self._owner), self._state_owner(run))

    def _state_owner(self, run: RunFiles) -> str | None:
        """The run whose checkpoint's state is superseded by this one's."""
        states = [file for file in run.files if file.path.name == _STATE or file.is_series]
        owned = [path for path in self._owner if path.suffix.lower() == ".json"] if states else []
        return next((self._owner[old] for old in owned for new in states if _is_next(old, new)), None)

    def _supersedes(self, name: str, run: RunFiles, file: RunFile, move: Callable[[Path, Path], None]) -> bool:
        """Whether `file` takes the place of an older checkpoint's state."""
        present = {each.path for each in run.files}
        for old in [path for path, owner in self._owner.items() if owner == name]:
            if old not in present and _is_next(old, file):
                self._owner.pop(old)
                self._owner[file.path] = name
                files = tuple(each for each in self.runs[name].files if each.path != old)
                self.runs[name] = RunFiles(name, run.target, (*files, file))
                move(old, file.path)
                return True
        return False

    def _free_name(self, run: RunFiles) -> str:
        if run.name not in self.runs:
            return run.name
        path = run.files[0].path
        place = path if len(run.files) == 1 else path.parent
        return name_runs([str(place)], self._cwd, self.runs)[0]


def _is_next(old: Path, new: RunFile) -> bool:
    """Whether `new` takes the place of the file at `old`: a checkpoint's state, or the newest document of many."""
    if not new.is_series:
        return _is_next_state(old, new.path)
    before, after = shape_of(old), shape_of(new.path)
    return before is not None and after is not None and before[:2] == after[:2] and before[2] < after[2]


def _is_next_state(old: Path, new: Path) -> bool:
    """Whether both are trainer_state.json of one output directory: in it, or in a checkpoint of it."""
    return old.name == new.name == _STATE and old != new and _home(old) == _home(new)


def _home(state: Path) -> Path:
    parent = state.parent
    return parent.parent if CHECKPOINT.fullmatch(parent.name) else parent
