"""From targets to runs: which files are there, which of them belong together, and what each run is called."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from trainmon.tails.continued import Continuations
from trainmon.tails.grouping import Group, group
from trainmon.tails.inherited import SETTINGS_NAME, SettingsAbove
from trainmon.tails.jobs import JobSource, LocalJobPlaces, chained_groups, job_groups
from trainmon.tails.looks import PATTERNS, Doubt, Look, Role, look_at_name, looks_like_log, unpacker_of
from trainmon.tails.naming import name_runs
from trainmon.tails.opening import explain, show
from trainmon.tails.probe import silence, silent_mount
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.scan import HYDRA, Folder, Found, Scan, base_of
from trainmon.tails.ssh.address import RemotePath
from trainmon.tails.starts import starts_of
from trainmon.tails.target import Target, TargetError, TargetKind, parse
from trainmon.tails.unpack import packing_of
from trainmon.tails.unread_stores import UnreadStore

STDIN = Path("-")
MAX_MATCHES = 10_000
_MOST_ASKED = 8  # directories, of those that a pattern without matches names


@dataclass(frozen=True, slots=True)
class RunFile:
    """One file of a run, by its path from `cwd`, and what it is for. `remote`: where it lies, if on another host.

    `attempt`: which start of the run wrote it, where a scheduler says; 0 is the first, or not known. `is_series`: it
    stands for all documents that the run wrote, one a step.
    Roles: text of the job, numbers, one rank's text, settings (not a log), a side log (stderr, warnings).
    """

    path: Path
    role: Role
    remote: RemotePath | None = None
    attempt: int = 0
    is_series: bool = False


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run. `target`: the word of the command line that led to it."""

    name: str
    target: str
    files: tuple[RunFile, ...]


@dataclass(frozen=True, slots=True)
class Discovery:
    """`problems`: one line for each target or directory that could not be used; `searched`: what was looked for.

    `may_grow`: a target on another host is a directory or a pattern, or could not be asked for. `down`: those of the
    problems that say that a host could not be reached.
    """

    runs: tuple[RunFiles, ...]
    problems: tuple[str, ...]
    searched: str
    targets: tuple[str, ...] = ()
    cwd: Path = Path()
    may_grow: bool = False
    down: tuple[str, ...] = ()


def discover(
    targets: Sequence[str], cwd: Path, jobs: JobSource | None = None, logs: Continuations | None = None
) -> Discovery:
    """The runs that `targets` name, or that lie below `cwd` when there are none. Never raises on what is on disk.

    `jobs`: who tells the files of ``slurm:`` targets. `logs`: keep it, and give it again when searching again.
    """
    return _Search(cwd, jobs, logs).run(targets)


class _Search:
    def __init__(self, cwd: Path, jobs: JobSource | None = None, logs: Continuations | None = None) -> None:
        self.cwd = cwd
        self.jobs = jobs
        self.logs = logs or Continuations()
        self.called: dict[int, str] = {}  # id of a group -> the name that its job gives it
        self.attempts: dict[str, int] = {}
        self.problems: list[str] = []
        self.groups: list[tuple[str, Group]] = []
        self.places: list[str] = []
        self.folders = 0
        self.entries = 0
        self.packed: list[str] = []
        self.stores: list[tuple[str, UnreadStore]] = []
        self.has_stdin = False
        self.above = SettingsAbove()
        self.parents: dict[str, Path] = {}  # of the files of runs
        self.elsewhere: list[Target] = []
        self.remote: dict[str, RemotePath] = {}
        self.named: set[str] = set()  # files that a target names
        self.may_grow = False
        self.down: list[str] = []

    def run(self, targets: Sequence[str]) -> Discovery:
        for text in targets or (".",):
            try:
                target = parse(text, self.cwd)
                if not self._is_silent(target):
                    self._take(target)
            except TargetError as error:
                self.problems.append(show(str(error)))
        self._take_remote()
        is_one_walk = len(targets) <= 1 and len(self.places) == 1  # gives each file once
        # A scheduler knows; what logs hold decides about those that it does not know.
        groups = self._continued(self._chained(self.groups if is_one_walk else self._without_repeats()))
        for _, found in groups:
            self._inherit(found)
            for path, start in starts_of(each.path for each in found.files).items():
                self.attempts.setdefault(path, start)
        names = name_runs([found.path for _, found in groups], self.cwd, named=self.named)
        names = [self.called.get(id(found), name) for name, (_, found) in zip(names, groups, strict=True)]
        runs = [
            RunFiles(name, target, tuple(map(self._file, found.files)))
            for name, (target, found) in zip(names, groups, strict=True)
        ]
        if self.has_stdin:
            runs.append(RunFiles("stdin", "-", (RunFile(STDIN, "stdout"),)))
        told = tuple(self.problems), self._searched(targets), tuple(targets), self.cwd
        return Discovery(tuple(runs), *told, may_grow=self.may_grow, down=tuple(self.down))

    def _file(self, found: Found) -> RunFile:
        remote, attempt = self.remote.get(found.path), self.attempts.get(found.path, 0)
        return RunFile(self._path(found.path), found.look.role, remote, attempt, found.look.is_series)

    def _path(self, text: str) -> Path:
        """``Path(text)``, at a third of what it costs to take the whole path of each file apart."""
        folder, _, name = text.rpartition("/")
        if len(folder) < 2:
            return Path(text)
        if folder not in self.parents:
            self.parents[folder] = Path(folder)
        return self.parents[folder] / name

    def _is_silent(self, target: Target) -> bool:
        """Whether a local target lies on a file system whose server does not answer: that must stop no other target."""
        if target.kind not in (TargetKind.PATH, TargetKind.DIR, TargetKind.GLOB):
            return False
        mount = silent_mount(self.cwd / target.path)
        if mount is None:
            return False
        self.problems.append(silence(target.text, mount))
        self.may_grow = True
        return True

    def _take(self, target: Target) -> None:
        if target.kind is TargetKind.STDIN:
            self.has_stdin = True
        elif target.kind is TargetKind.DIR:
            self._take_directory(target)
        elif target.kind is TargetKind.GLOB:
            self._take_glob(target)
        elif target.kind is TargetKind.PATH:
            self.groups.append((target.text, self._named(target.path)))
            self.named.add(self.groups[-1][1].path)
        elif target.remote is not None:
            self.elsewhere.append(target)
        else:
            self._take_jobs(target)

    def _take_jobs(self, target: Target) -> None:
        """The runs of a scheduler's jobs; more may come: a queued job's files, the next job of a chain."""
        self.may_grow = True
        if self.jobs is None:
            self.problems.append(f"{show(target.text)}: no scheduler is asked here; name the job's log file")
            return
        runs, problems = self.jobs.jobs_of(target.text)
        self.problems += problems

        def lost(why: str) -> None:
            self.problems.append(f"{show(target.text)}: {why}")

        for job, found, attempts in job_groups(runs, LocalJobPlaces(), self._settings_beside, lost):
            self.called[id(found)] = job.name
            self.attempts |= attempts
            self.groups.append((target.text, found))

    def _take_remote(self) -> None:
        """What lies on other hosts; all of them are asked at once."""
        if not self.elsewhere:
            return
        from trainmon.tails.ssh.everywhere import search_hosts  # for those who need it: ssh's own modules

        for searched in search_hosts(self.elsewhere, self.jobs):
            self.groups += searched.groups
            self.down += [searched.down] if searched.down else []
            self.problems += searched.problems + ([searched.down] if searched.down else [])
            self.remote |= searched.remote
            self.called |= searched.called
            self.attempts |= searched.attempts
            self.places += searched.places
            self.folders += searched.folders
            self.entries += searched.entries
            self.may_grow = self.may_grow or searched.may_grow

    def _continued(self, groups: list[tuple[str, Group]]) -> list[tuple[str, Group]]:
        """Logs of this machine that go on with each other are one run; not those that a target names."""
        here = [
            each
            for each in groups
            if each[1].path not in self.remote and each[1].path not in self.named and id(each[1]) not in self.called
        ]
        continued = self.logs.join(here, self.cwd)
        if len(continued.groups) == len(here):
            return groups
        self.attempts |= continued.attempts
        before = {id(found) for _, found in here}
        return [*continued.groups, *(each for each in groups if id(each[1]) not in before)]

    def _chained(self, groups: list[tuple[str, Group]]) -> list[tuple[str, Group]]:
        """The logs of jobs that follow each other are one run, where a scheduler says so; those of this machine."""
        here = [each for each in groups if each[1].path not in self.remote and id(each[1]) not in self.called]
        if self.jobs is None or len(here) < 2:
            return groups
        chained = chained_groups(here, self.jobs, path_of=lambda path: str(self.cwd / path))
        if not chained.called:
            return groups
        self.called |= chained.called
        self.attempts |= chained.attempts
        before = {id(found) for _, found in here}
        return [*chained.groups, *(each for each in groups if id(each[1]) not in before)]

    def _take_directory(self, target: Target) -> None:
        path = str(self.cwd / target.path)
        if not os.path.isdir(path):
            self.problems.append(f"{show(target.text)}: no such directory; check the spelling")
            return
        before = self.entries
        self.packed.clear()
        self.stores.clear()
        runs = group(self._scanned(target.path))
        self.groups += [(target.text, run) for run in runs]
        if not runs:
            advice = "; name a log file, or the directory that holds the runs"
            if self.stores:
                store, kind = self.stores[0]
                where = show(os.path.relpath(store, path))
                advice = f", but a store that only {kind.owner} can read: {where}; {kind.advice}"
            elif self.packed:
                advice = f", but compressed ones, which are not read as they are: {read_packed(self.packed, path)}"
            self.problems.append(
                f"{show(target.text)}: no training logs in or below this directory"
                f" ({self.entries - before} files looked at){advice}"
            )

    def _take_glob(self, target: Target) -> None:
        matches = glob.glob(target.path, root_dir=self.cwd, recursive=True)
        if not matches:
            why = self._denied(target.path) or "nothing matches; check the pattern (quote it from the shell)"
            self.problems.append(f"{show(target.text)}: {why}")
            return
        if len(matches) > MAX_MATCHES:
            self.problems.append(f"{show(target.text)}: {len(matches)} matches, the first {MAX_MATCHES} are taken")
        before = len(self.groups)
        folders: dict[str, Folder] = {}
        for match in sorted(matches)[:MAX_MATCHES]:
            if os.path.isdir(self.cwd / match):
                self.groups += [(target.text, run) for run in group(self._scanned(match))]
            elif (look := self._glob_look(match)) is not None:
                parent = os.path.dirname(match)
                folder = folders.setdefault(parent, Folder(str(self.cwd / parent), 0))
                if look.is_state:
                    folder.states.append(str(self.cwd / match))
                else:
                    folder.files.append(Found(str(self.cwd / match), look))
        for folder in folders.values():
            self.groups += [(target.text, run) for run in group(folder)]
        if len(self.groups) == before:
            self.problems.append(
                f"{show(target.text)}: {len(matches)} match, none looks like a training log; name one to read it anyway"
            )

    def _denied(self, pattern: str) -> str:
        """Which directory that a pattern without matches names may not be read; "" when none is so."""
        folder = os.path.dirname(pattern)
        while folder not in ("", "/"):
            matches = glob.glob(folder, root_dir=self.cwd, recursive=True)[:_MOST_ASKED]
            for match in matches or [folder]:
                try:
                    os.listdir(self.cwd / match)
                except PermissionError as error:
                    return explain(match, error)
                except OSError:
                    continue
            if matches:
                break
            folder = os.path.dirname(folder)
        return ""

    def _glob_look(self, match: str) -> Look | None:
        """Files that a pattern names: those called a log count as they are, others when they look like one."""
        look = look_at_name(os.path.basename(match))
        if look is None or look.doubt in (Doubt.NONE, Doubt.TEXT):
            return look

        def unread(path: str, error: OSError) -> None:
            self.problems.append(explain(path, error))

        return look if looks_like_log(str(self.cwd / match), look.doubt, unread) else None

    def _scanned(self, path: str) -> Folder:
        scan = Scan()
        folder = scan.walk(str(self.cwd / path))
        self.problems += scan.problems
        self.folders += scan.folders
        self.entries += scan.entries
        self.packed += scan.packed
        self.stores += scan.stores
        self.places.append(path)
        return folder

    def _named(self, path: str) -> Group:
        """A file that is named is a run of its own, also before it exists; settings beside it belong to it."""
        name = os.path.basename(path)
        look = look_at_name(name.rpartition(".")[0] if packing_of(name) else name) or Look("stdout", Doubt.NONE)
        if look.role in ("config", "rank", "log"):
            look = Look("stdout", Doubt.NONE)
        return Group(str(self.cwd / path), [Found(str(self.cwd / path), look), *self._settings_beside(path)])

    def _settings_beside(self, path: str) -> list[Found]:
        parent = (self.cwd / path).parent
        try:
            names = sorted(entry.name for entry in os.scandir(parent) if entry.is_file())
        except OSError:
            return []
        looks = [(name, look_at_name(name)) for name in names if name.endswith((".toml", ".json", ".yaml", ".yml"))]
        base = os.path.basename(path)
        found = [
            Found(str(parent / name), look) for name, look in looks if look and look.role == "config" and name != base
        ]
        if (parent / HYDRA).is_file():
            found.append(Found(str(parent / HYDRA), Look("config", Doubt.NONE)))
        return found

    def _inherit(self, run: Group) -> None:
        """Settings of a directory above hold where none lie nearer."""
        if run.path in self.remote or any(base_of(file.path) == SETTINGS_NAME for file in run.files):
            return
        found = self.above.nearest(os.path.dirname(run.files[0].path) if run.files else run.path)
        look = look_at_name(SETTINGS_NAME)
        if found is not None and look is not None:
            run.files.append(Found(found, look))

    def _without_repeats(self) -> list[tuple[str, Group]]:
        """A file counts once, in the largest run that holds it."""
        order = sorted(range(len(self.groups)), key=lambda place: -len(self.groups[place][1].files))
        seen: set[str] = set()
        kept = []
        for place in order:
            files = [found for found in self.groups[place][1].files if found.look.role != "config"]
            real = {os.path.realpath(self.cwd / found.path) for found in files}
            if not real or real <= seen:
                continue
            seen |= real
            kept.append(place)
        return [self.groups[place] for place in sorted(kept)]

    def _searched(self, targets: Sequence[str]) -> str:
        if not self.places:
            return f"looked for {', '.join(show(text) for text in targets[:5])}{', ...' if len(targets) > 5 else ''}"
        places = ", ".join(show(place) for place in self.places[:3]) + (", ..." if len(self.places) > 3 else "")
        return (
            f"looked below {places} ({self.folders} directories, {self.entries} files) for files that hold numbers of a"
            f" training: {PATTERNS}"
        )


def read_packed(paths: Sequence[str], folder: str) -> str:
    """How the first of some compressed logs below `folder` is read.

    >>> read_packed(["/runs/a/metrics.jsonl.gz", "/runs/b/metrics.jsonl.gz"], "/runs")
    'a/metrics.jsonl.gz and 1 more; unpack them, or: zcat FILE | trainmon watch -'
    """
    tool = unpacker_of(os.path.basename(paths[0]))
    more, them = (f" and {len(paths) - 1:,} more", "them") if len(paths) > 1 else ("", "it")
    return f"{show(os.path.relpath(paths[0], folder))}{more}; unpack {them}, or: {tool} FILE | trainmon watch -"
