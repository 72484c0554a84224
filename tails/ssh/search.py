"""From targets on one host to runs: what `discover` does for this machine, over the connection."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import field

from trainmon.tails.grouping import Group, group
from trainmon.tails.inherited import LEVELS_UP, SETTINGS_NAME
from trainmon.tails.jobs import JobSource, chained_groups, job_groups
from trainmon.tails.looks import Doubt, Look, look_at_name
from trainmon.tails.opening import explain, show
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.scan import Folder, Found, Scan
from trainmon.tails.ssh.address import Address, RemotePath, has_wildcard
from trainmon.tails.ssh.ask import MAX_MATCHES, HostDownError
from trainmon.tails.ssh.host import Host
from trainmon.tails.ssh.places import FarJobPlaces, Heads, MountHangsError, RemotePlaces
from trainmon.tails.target import Target, TargetKind

_MOST_ASKED = 8  # directories, of those that a pattern without matches names
_ENDINGS = (".toml", ".json", ".yaml", ".yml")


@dataclass(slots=True)
class Searched:
    """What was found: per target its groups, whose paths are `RemotePath.name`; `remote` says what each is.

    `called`, `attempts`: names and starts of scheduler's jobs, by the id of a group and the name of a file.
    `may_grow`: a target is one that new files can appear in. `down`: why the host could not be asked, one line.
    """

    groups: list[tuple[str, Group]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    remote: dict[str, RemotePath] = field(default_factory=dict)
    called: dict[int, str] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    folders: int = 0
    entries: int = 0
    may_grow: bool = False
    down: str = ""


def search(host: Host, targets: Sequence[Target], heads: Heads, jobs: JobSource | None = None) -> Searched:
    """Looks for `targets` on `host`, for those that name jobs with the help of `jobs`. Blocks; never raises."""
    searched = Searched()
    try:
        for target in targets:
            if target.remote is None:
                continue
            one = _Search(host, searched, heads, target.remote)
            try:
                if target.kind is TargetKind.SLURM:
                    one.take_jobs(target.text, jobs)
                else:
                    one.take(target.text)
            except MountHangsError as error:  # the other targets go on
                searched.problems.append(f"{show(target.text)}: {error}")
                searched.may_grow = True
        if jobs is not None:
            _chain(searched, host.address, jobs)
    except HostDownError as error:
        searched.down = str(error)
        searched.may_grow = True
    return searched


def _chain(searched: Searched, address: Address, jobs: JobSource) -> None:
    """The logs of jobs that follow each other are one run, where the scheduler there says so."""
    named = [each for each in searched.groups if id(each[1]) in searched.called]
    others = [each for each in searched.groups if id(each[1]) not in searched.called]
    if len(others) > 1:
        chained = chained_groups(others, jobs, address, lambda name: searched.remote[name].path)
        searched.groups = [*named, *chained.groups]
        searched.called |= chained.called
        searched.attempts |= chained.attempts


class _Search:
    def __init__(self, host: Host, out: Searched, heads: Heads, remote: RemotePath) -> None:
        self.out = out
        self.remote = remote
        self.above: dict[str, str] = {}
        self.places = RemotePlaces(host, heads)

    def take(self, text: str) -> None:
        """Adds what one target names."""
        path = self.remote.path
        if self.places.is_dir(path):
            self._take_directory(text, path)
        elif self.remote.is_pattern and not self.places.exists(path):
            self._take_pattern(text, path)
        elif path.endswith("/"):
            self.out.may_grow = True
            why = self._denied(path.rstrip("/")) or "no such directory there; check the spelling"
            self.out.problems.append(f"{show(text)}: {why}")
        else:
            self._add(text, self._named(path))

    def take_jobs(self, text: str, jobs: JobSource | None) -> None:
        """Adds the runs of a scheduler's jobs; more may come: a queued job's files, the next job of a chain."""
        self.out.may_grow = True
        if jobs is None:
            self.out.problems.append(f"{show(text)}: no scheduler is asked here; name the job's log file")
            return
        runs, problems = jobs.jobs_of(text)
        self.out.problems += problems

        def lost(why: str) -> None:
            self.out.problems.append(f"{show(text)}: {why}")

        for job, found, attempts in job_groups(runs, FarJobPlaces(self.places), self._settings_beside, lost):
            self.out.called[id(found)] = job.name
            self.out.attempts |= {self.remote.at(path).name: number for path, number in attempts.items()}
            self._add(text, found)

    def _take_directory(self, text: str, path: str) -> None:
        self.out.may_grow = True
        before, entries = len(self.out.groups), self.out.entries
        for run in group(self._scanned(path)):
            self._add(text, run)
        if len(self.out.groups) == before:
            self.out.problems.append(
                f"{show(text)}: no training logs in or below this directory ({self.out.entries - entries} files looked"
                " at); name a log file, or the directory that holds the runs"
            )

    def _take_pattern(self, text: str, pattern: str) -> None:
        self.out.may_grow = True
        matches = self.places.matches(pattern)
        if not matches:
            why = self._denied(os.path.dirname(pattern))
            words = "nothing matches there; check the pattern (quote it from the shell)"
            self.out.problems.append(f"{show(text)}: {why or words}")
            return
        if len(matches) > MAX_MATCHES:
            self.out.problems.append(f"{show(text)}: over {MAX_MATCHES} matches, the first ones are taken")
        before = len(self.out.groups)
        folders: dict[str, Folder] = {}
        doubtful: list[tuple[Folder, Found]] = []
        for match in matches[:MAX_MATCHES]:
            path = match.removeprefix("./")
            if self.places.is_dir(path):
                for run in group(self._scanned(path)):
                    self._add(text, run)
            elif (look := look_at_name(_base(path))) is not None:
                parent = os.path.dirname(path)
                folder = folders.setdefault(parent, Folder(parent, 0, places=self.places))
                if look.is_state:
                    folder.states.append(path)
                elif look.doubt in (Doubt.NONE, Doubt.TEXT):
                    folder.files.append(Found(path, look))
                else:
                    doubtful.append((folder, Found(path, look)))
        shown = {found.path for found in self.places.shows_training([found for _, found in doubtful])}
        self.out.problems += [f"{self.remote.address.name}: {line}" for line in self.places.unread]
        self.places.unread.clear()
        for folder, found in doubtful:
            if found.path in shown:
                folder.files.append(found)
        for folder in folders.values():
            folder.files.sort(key=lambda found: found.path)
            for run in group(folder):
                self._add(text, run)
        if len(self.out.groups) == before:
            self.out.problems.append(
                f"{show(text)}: {len(matches)} match, none looks like a training log; name one to read it anyway"
            )

    def _denied(self, folder: str) -> str:
        """Which directory may not be read, of `folder` or those that this pattern matches; "" when none is so."""
        while folder not in ("", "/"):
            matches = self.places.matches(folder) if has_wildcard(folder) else [folder]
            for match in matches[:_MOST_ASKED]:
                error = self.places.why_unread(match)
                if error is not None and error.errno in (errno.EACCES, errno.EPERM):
                    return explain(match, error)
            if matches:
                break
            folder = os.path.dirname(folder)
        return ""

    def _scanned(self, path: str) -> Folder:
        scan = Scan(self.places)
        folder = scan.walk(path.rstrip("/") or "/")
        self.out.problems += [f"{self.remote.address.name}: {problem}" for problem in scan.problems]
        self.out.folders += scan.folders
        self.out.entries += scan.entries
        self.out.places.append(self.remote.at(path).name)
        return folder

    def _named(self, path: str) -> Group:
        """A file that is named is a run of its own, also before it exists; settings beside it belong to it."""
        look = look_at_name(_base(path)) or Look("stdout", Doubt.NONE)
        if look.role in ("config", "rank", "log"):
            look = Look("stdout", Doubt.NONE)
        return Group(path, [Found(path, look), *self._settings_beside(path)])

    def _settings_beside(self, path: str) -> list[Found]:
        try:
            _, children = self.places.children(os.path.dirname(path) or ".")
        except OSError as error:
            del error
            return []
        found = []
        for child in children:
            look = look_at_name(child.name) if child.name.endswith(_ENDINGS) and child.is_file() else None
            if look is not None and look.role == "config" and child.name != _base(path):
                found.append(Found(child.path, look))
        return found

    def _inherit(self, run: Group) -> None:
        """Settings of a directory above hold where none lie nearer, as on this machine (`inherited`)."""
        look = look_at_name(SETTINGS_NAME)
        if look is None or any(_base(found.path) == SETTINGS_NAME for found in run.files):
            return
        folder = os.path.dirname(run.files[0].path if run.files else run.path)
        if folder not in self.above:
            self.above[folder] = self._settings_above(folder)
        if found := self.above[folder]:
            run.files.append(Found(found, look))

    def _settings_above(self, folder: str) -> str:
        place = folder
        for _ in range(LEVELS_UP + 1):
            if not place.startswith("/") or place in ("/", "/home") or self.places.may_anyone_write(place):
                return ""
            if self.places.is_file(f"{place}/{SETTINGS_NAME}"):
                return f"{place}/{SETTINGS_NAME}"
            place = os.path.dirname(place)
        return ""

    def _add(self, text: str, run: Group) -> None:
        """Keeps a run under the names that its files have here."""
        self._inherit(run)
        for found in run.files:
            if found.path not in self.out.remote:
                place = self.remote.at(found.path)
                self.out.remote[place.name] = place
                found.path = place.name
        run.path = self.remote.at(run.path).name
        run.folder = self.remote.at(run.folder).name if run.folder else ""
        self.out.groups.append((text, run))


def _base(path: str) -> str:
    return os.path.basename(path)
