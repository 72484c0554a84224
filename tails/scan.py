"""Walking a directory for candidates: bounded, safe in circles of symbolic links, few reads."""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import field, replace
from operator import attrgetter
from typing import Protocol

from trainmon.tails.formats.config_facts import is_fact_name
from trainmon.tails.fstype import Mount, read_mounts
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import Doubt, Look, look_at_name, looks_like_log, numbered_name, unpacker_of
from trainmon.tails.opening import explain, show
from trainmon.tails.probe import silence, silent_mount
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.unpack import packing_of
from trainmon.tails.unread_stores import UnreadStore, unread_store

MAX_DEPTH = 8
MAX_FOLDERS = 20_000
MAX_ENTRIES = 400_000
_MAX_DENIED = 5
_MANY = 100  # a directory with more doubtful files than this is a data set, unless some of the first are logs
_TRIED = 20

_HIDDEN_RUNS = (".guild", ".neptune")  # trackers that keep runs out of sight
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "site-packages", "dist-packages", "venv", "virtualenv", "env"}
    | {"weights", "lost+found"}
)
CHECKPOINT = lazy(
    r"(?:(?:checkpoint|ckpt|global_?step|weights|hf)[-_=]?\d+[-_.]?|(?:step|iter|iteration|epoch)[-_=]?\d{2,}[-_.]?)+"
    r"(?:ckpt)?|.*\.ckpt",
    re.IGNORECASE,
)
_WANDB_RUN = lazy(r"(?:offline-)?run-\d{8}_")
_STATE = "trainer_state.json"
_METRIC_LOOK = Look("metrics", Doubt.METRIC)
_by_name, _by_path = attrgetter("name"), attrgetter("path")


@dataclass(slots=True)
class Found:
    """A file that counts, and what its name says."""

    path: str
    look: Look


class Places(Protocol):
    """What a walk asks of a file system; all but `exists` and `shows_training` may raise OSError.

    `unread`: a line for each file that may be a log, as far as its name goes, and whose content could not be read.
    """

    unread: list[str]

    def children(self, path: str) -> tuple[tuple[int, int], list[Child]]:
        """A directory's device and inode, and what is in it, by name."""

    def identity(self, path: str) -> tuple[int, int]:
        """Device and inode of a file, links followed."""

    def exists(self, path: str) -> bool:
        """Whether there is something."""

    def mtime(self, path: str) -> float:
        """When a file was last written to."""

    def shows_training(self, found: list[Found]) -> list[Found]:
        """Those whose content shows what their names promise (`looks.looks_like_log`)."""


class Child(Protocol):
    """A name in a directory: what of ``os.DirEntry`` a walk uses."""

    @property
    def name(self) -> str:
        """The last component."""

    @property
    def path(self) -> str:
        """The whole path."""

    def is_dir(self) -> bool:
        """Whether it leads to a directory; may raise OSError."""

    def is_file(self) -> bool:
        """Whether it leads to a regular file."""

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""

    def inode(self) -> int:
        """Its inode."""


class LocalPlaces:
    """This machine's file systems."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        self._mounts: tuple[Mount, ...] | None = None
        self._far_points: frozenset[str] = frozenset()

    def silent_mount(self, path: str) -> Mount | None:
        """The mount that `path` leads to, when its server does not answer."""
        if self._mounts is None:
            self._mounts = read_mounts()
            self._far_points = frozenset(mount.point for mount in self._mounts if mount.may_hang)
        return silent_mount(path, self._mounts)

    def children(self, path: str) -> tuple[tuple[int, int], list[Child]]:
        """A directory's identity and children. Raises OSError, ETIMEDOUT where a server does not answer."""
        if (self._mounts is None or path in self._far_points) and self.silent_mount(path) is not None:
            raise OSError(errno.ETIMEDOUT, "the file server does not answer")
        status = os.stat(path)
        with os.scandir(path) as listing:
            return (status.st_dev, status.st_ino), sorted(listing, key=_by_name)

    def identity(self, path: str) -> tuple[int, int]:
        """Device and inode."""
        status = os.stat(path)
        return status.st_dev, status.st_ino

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        return os.path.exists(path)

    def mtime(self, path: str) -> float:
        """When it was last written to."""
        return os.stat(path).st_mtime

    def shows_training(self, found: list[Found]) -> list[Found]:
        """Those that look like logs."""

        def unread(path: str, error: OSError) -> None:
            self.unread.append(explain(path, error))

        return [each for each in found if looks_like_log(each.path, each.look.doubt, unread)]


@dataclass(slots=True)
class Folder:
    """A directory with what was found in it. `states`: trainer_state.json of it and of its checkpoints.

    `is_store`: each file in and below it is one metric of one run.
    """

    path: str
    depth: int
    files: list[Found] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    places: Places = field(default_factory=LocalPlaces)
    is_store: bool = False

    @property
    def name(self) -> str:
        """Its last component."""
        return base_of(self.path)

    def newest_state(self) -> str | None:
        """Of several states of one run only the newest counts: it holds the history of those before it."""
        return max(self.states, key=lambda path: _age_key(path, self.places), default=None)


HYDRA = ".hydra/config.yaml"  # where hydra keeps the settings of the run in whose directory it lies
_PARAMS = "params"  # MLflow's directory of a run's settings, one a file
_SETTING = Look("config", Doubt.NONE)


class Scan:
    """One walk. `problems` are lines to show; `folders` and `entries` count what was looked at."""

    def __init__(self, places: Places | None = None) -> None:
        self.places: Places = places or LocalPlaces()
        self.problems: list[str] = []
        self.folders = 0
        self.entries = 0
        self.packed: list[str] = []  # logs by their names, in directories without others, that are compressed
        self.stores: list[tuple[str, UnreadStore]] = []  # of trackers, that nothing here can read
        self._denied = 0
        self._visited: set[tuple[int, int]] = set()
        self._known: set[tuple[int, int]] = set()
        self._links: list[tuple[Folder, str, Look]] = []

    def walk(self, root: str) -> Folder:
        """What is found in and below `root`. Directories behind symbolic links come last, each directory once."""
        above, name = os.path.split(root)
        top = Folder(root, 0, places=self.places, is_store=_is_store_below(above, name, self.places))
        queue = deque([top])
        behind_links: deque[Folder] = deque()
        while queue or behind_links:
            folder = queue.popleft() if queue else behind_links.popleft()
            if self.folders >= MAX_FOLDERS or self.entries >= MAX_ENTRIES:
                self.problems.append(
                    f"{show(root)}: stopped after {self.folders} directories and {self.entries} files; "
                    "name a directory further down"
                )
                break
            for child, is_link in self._look_into(folder):
                folder.folders.append(child)
                (behind_links if is_link else queue).append(child)
        for folder, path, look in self._links:
            self._add_link(folder, path, look)
        self._links.clear()
        if self._denied > _MAX_DENIED:
            self.problems.append(f"{show(root)}: {self._denied - _MAX_DENIED} more directories that cannot be read")
        unread = self.places.unread
        self.problems += unread[:_MAX_DENIED]
        if len(unread) > _MAX_DENIED:
            more = len(unread) - _MAX_DENIED
            self.problems.append(f"{show(root)}: {more:,} more files that cannot be read and may be logs")
        unread.clear()
        return top

    def _look_into(self, folder: Folder) -> Iterator[tuple[Folder, bool]]:
        try:
            identity, entries = self.places.children(folder.path)
            if identity in self._visited:
                return
            self._visited.add(identity)
        except OSError as error:
            self._denied += 1
            if self._denied <= _MAX_DENIED:
                self.problems.append(explain(folder.path, error))
            return
        self.folders += 1
        self.entries += len(entries)
        doubtful: list[Found] = []
        for entry in entries:
            is_link = entry.is_symlink()
            if is_link and self._is_silent(entry):
                continue
            if (store := unread_store(folder.path, entry.name)) is not None:
                self.stores.append((entry.path, store))
            if _is_dir(entry):
                if child := self._child(folder, entry):
                    yield child, is_link
            elif look := (_METRIC_LOOK if folder.is_store else look_at_name(entry.name)):
                self._add(folder, entry, look, identity[0], doubtful, is_link=is_link)
        if doubtful:
            self._settle(folder, doubtful)
        if packed := [entry for entry in entries if unpacker_of(entry.name)]:
            self._add_packed(folder, packed)
        folder.files.sort(key=_by_path)

    def _add_packed(self, folder: Folder, packed: list[Child]) -> None:
        """What is called as a log beside it is an older part or a copy of that."""
        plain = tuple(base_of(found.path) for found in folder.files)
        packed = [entry for entry in packed if not entry.name.startswith(plain)]
        if packed and isinstance(self.places, LocalPlaces):
            folder.files += _packed_logs(packed)
        if not folder.files:
            self.packed += [entry.path for entry in packed]

    def _is_silent(self, entry: Child) -> bool:
        """Whether a local link leads to a file system whose server does not answer."""
        if not isinstance(self.places, LocalPlaces):
            return False
        mount = self.places.silent_mount(entry.path)
        if mount is not None:
            self.problems.append(silence(entry.path, mount))
        return mount is not None

    def _is_store(self, folder: Folder, name: str) -> bool:
        """Whether each file below the directory `name` of `folder` is one metric of one run: MLflow's, DVCLive's."""
        return folder.is_store or _is_store_below(folder.path, name, self.places)

    def _child(self, folder: Folder, entry: Child) -> Folder | None:
        if CHECKPOINT.fullmatch(entry.name):
            state = f"{entry.path}/{_STATE}"
            if self.places.exists(state):
                folder.states.append(state)
            return None
        if entry.name == HYDRA.partition("/")[0]:
            settings = f"{folder.path}/{HYDRA}"
            if self.places.exists(settings):
                folder.files.append(Found(settings, _SETTING))
            return None
        if entry.name == _PARAMS and self.places.exists(f"{folder.path}/meta.yaml"):
            folder.files += self._settings_in(entry)
            return None
        if entry.name == "logs" and _WANDB_RUN.match(folder.name):  # W&B's own debug logs
            return None
        if "." in entry.name and (look := look_at_name(entry.name)) and look.role != "config":
            self.problems.append(f"{show(entry.path)}: is a directory, not a file; what is in it is looked at")
        if not is_walked(entry.name) or folder.depth >= MAX_DEPTH:
            return None
        is_store = self._is_store(folder, entry.name)
        return Folder(entry.path, folder.depth + 1, places=self.places, is_store=is_store)

    def _settings_in(self, entry: Child) -> list[Found]:
        """The files of a directory that holds one setting each, of those that tell something of the run."""
        try:
            _, entries = self.places.children(entry.path)
        except OSError:
            return []
        return [Found(each.path, _SETTING) for each in entries if is_fact_name(each.name) and each.is_file()]

    def _add(
        self, folder: Folder, entry: Child, look: Look, device: int, doubtful: list[Found], *, is_link: bool
    ) -> None:
        if entry.name.startswith("debug") and folder.name == "wandb":
            return
        if is_link:
            self._links.append((folder, entry.path, look))
            return
        if not entry.is_file():
            if look.doubt is Doubt.NONE and look.role != "config":
                self.problems.append(f"{show(entry.path)}: is a pipe, a socket or a device, not a log file; left out")
            return
        self._known.add((device, entry.inode()))
        if look.is_state:
            folder.states.append(entry.path)
        elif look.doubt is Doubt.NONE:
            folder.files.append(Found(entry.path, look))
        else:
            doubtful.append(Found(entry.path, look))

    def _settle(self, folder: Folder, doubtful: list[Found]) -> None:
        """Reads the heads of files whose names leave doubt."""
        logs = [found for found in doubtful if found.look.doubt is Doubt.TEXT]
        others = [found for found in doubtful if found.look.doubt is not Doubt.TEXT]
        folder.files += self.places.shows_training(logs)
        tried = self.places.shows_training(others[:_TRIED])
        if len(others) <= _MANY or tried:
            tried += self.places.shows_training(others[_TRIED:])
        folder.files += tried

    def _add_link(self, folder: Folder, path: str, look: Look) -> None:
        """A file behind a symbolic link counts unless the file itself was found."""
        try:
            key = self.places.identity(path)
        except OSError:
            return
        if key in self._known:
            return
        found = Found(path, look)
        if look.doubt is Doubt.NONE or self.places.shows_training([found]):
            self._known.add(key)
            folder.files.append(found)


def _packed_logs(entries: list[Child]) -> list[Found]:
    """The packed files that are logs by what they unpack to; none where the first of many are none."""
    from trainmon.tails.packed import shows_training  # for those who have such files

    found: list[Found] = []
    for place, entry in enumerate(entries):
        look = look_at_name(entry.name.rpartition(".")[0]) if packing_of(entry.name) and entry.is_file() else None
        if look is not None and not numbered_name(entry.name.rpartition(".")[0]) and shows_training(entry.path, look):
            found.append(Found(entry.path, replace(look, is_state=False)))
        if place >= _TRIED and not found:
            break
    return found


def _is_store_below(path: str, name: str, places: Places) -> bool:
    return name == "metrics" and (base_of(path) == "plots" or "/mlruns/" in path or places.exists(f"{path}/meta.yaml"))


def base_of(path: str) -> str:
    """The last component, as ``os.path.basename`` gives it at four times the cost."""
    return path[path.rfind("/") + 1 :]


def is_walked(name: str) -> bool:
    """Whether a walk goes into directories of that name."""
    is_shown = not name.startswith(".") or name in _HIDDEN_RUNS
    return is_shown and name.lower() not in _SKIPPED and not CHECKPOINT.fullmatch(name)


def _is_dir(entry: Child) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _age_key(path: str, places: Places) -> tuple[float, int, str]:
    digits = re.findall(r"\d+", os.path.basename(os.path.dirname(path)))
    try:
        return places.mtime(path), int(digits[-1]) if digits else 0, path
    except OSError:
        return 0.0, 0, path
