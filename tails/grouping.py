"""Which files belong to one run.

Files of one directory are one run, unless several logs of one kind lie beside each other (a.log, b.log). A file's
key (`looks`) is what is left of its name without the words that every run uses; files of one key go together, and
the files without a key go with the only run that is there. Directories that by their name are a part of a run
(tensorboard, logs, eval, rank_3, ...) join the run of the directory above.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.looks import RANK_FOLDER, look_at_name
from trainmon.tails.named_alike import joined_by_name
from trainmon.tails.numbered import settle_numbered
from trainmon.tails.numbered_documents import settle_documents
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.scan import Folder, Found, base_of
from trainmon.tails.starts import WANDB_START

_PART = lazy(
    r"train|training|eval|evaluation|val|valid|validation|test|dev|logs?|logging|tb|tblogs?|tb_logs?"
    r"|tensorboard(?:_logs?)?|events|files|output|metrics|stdout|stderr|csv|csv_logs|trainer_logs|\.guild|attempt_\d+|vis_data",
    re.IGNORECASE,
)
# SummaryWriter.add_scalars: a folder for each line of a chart, loss_train or loss/train, beside the run's event file.
_SETS = r"(?:train|training|eval|evaluation|val|valid|validation|test|dev)"
_CHART = r"[a-z_]*(?:loss|acc|accuracy|error|ppl|perplexity|nll)[a-z_]*"
_LINE_OF_CHART = lazy(rf"{_CHART}[_-]{_SETS}", re.IGNORECASE)
# pytorch's writer and Lightning's monitor give the rate a folder beside it; lr_0.01 is a run of a sweep
_RATE_FOLDER = lazy(r"(?:lr|learning[_-]?rate)(?:[_/-](?=[A-Za-z])[\w-]+)?", re.IGNORECASE)
_CHART_FOLDER = lazy(_CHART, re.IGNORECASE)
_SET_FOLDER = lazy(_SETS, re.IGNORECASE)
_SUMMARY = "metrics.json"  # DVCLive's: the last value of what lies in plots/metrics beside it
_STORE = frozenset({"wandb", "dvclive", "lightning_logs", "tensorboard", "tb", "tb_logs"})
_DATED = lazy(r"[A-Z][a-z]{2}\d{1,2}_\d{2}-\d{2}-\d{2}_.*")  # SummaryWriter's own: runs/Dec01_12-30-00_host
_NEAR = 2  # directories up to where settings that stand alone are those of the only run below them
_COLLECTION = 2  # so many directories that are runs make the directory above them a collection
_STATE_LOOK = look_at_name("trainer_state.json")


@dataclass(slots=True)
class Group:
    """The files of one run. `path`: the directory it fills, or the file that names it; `key`: of its files."""

    path: str
    files: list[Found]
    key: str = ""
    folder: str = ""


def group(root: Folder) -> list[Group]:
    """The runs in and below `root`, in order of their paths."""
    runs = joined_by_name(root.path, _runs_of(root, inherited=None))
    for run in runs:
        _name_main_log(run)
    return runs


def _name_main_log(run: Group) -> None:
    """A side log with no main log beside it is the main log."""
    if all(found.look.role in ("log", "config") for found in run.files):
        first = next(found for found in run.files if found.look.role == "log")
        first.look = replace(first.look, role="stdout")


def _runs_of(folder: Folder, inherited: Found | None) -> list[Group]:
    settings = next((found for found in folder.files if base_of(found.path) == "trainmon.toml"), inherited)
    if any(child.name == "plots" and any(one.is_store for one in child.folders) for child in folder.folders):
        folder.files = [found for found in folder.files if base_of(found.path) != _SUMMARY]
    own = _own_runs(folder)
    is_bare = not own
    if settings is not None:
        for run in own:
            if settings not in run.files:
                run.files.append(settings)
    parts: list[Group] = []
    others: list[Group] = []
    loose: list[Group] = []  # parts that only a name makes parts
    whole = 0  # directories that are runs of their own
    children = [(child, _runs_of(child, settings)) for child in folder.folders]
    keys = {run.key for child, runs in children if RANK_FOLDER.fullmatch(child.name) for run in runs}
    for child, runs in children:
        if not _is_part(folder, child, runs, has_own=len(own) == 1, alike=len(keys) == 1):
            others.extend(runs)
            whole += len(runs) == 1 and runs[0].folder == child.path
            continue
        parts.extend(runs)
        if not _is_of_a_rank(child.name):
            loose.extend(runs)
    if len(own) == 1 and own[0].key and whole >= _COLLECTION:
        # A log with a name of its own among whole runs is one run more: it does not own the metrics of another.
        others, parts = others + loose, [part for part in parts if part not in loose]
    if len(own) == 1 and parts:
        own = [_joined(folder, own + parts)]
    elif not own and not others and parts:
        own = [_joined(folder, parts)]
    else:
        others = parts + others
    runs = own + others
    if is_bare and len(runs) == 1 and _depth_below(folder, runs[0]) <= _NEAR:
        own_words = [found for found in folder.files if found.look.role == "config" and found is not settings]
        runs[0].files += own_words
    return _resumed(runs)


def _resumed(runs: list[Group]) -> list[Group]:
    """The directories of one W&B run, which it makes anew whenever it is resumed, as one run: its newest."""
    starts: dict[tuple[str, str], list[Group]] = {}
    for run in runs:
        if "run-" in run.folder and (match := WANDB_START.fullmatch(base_of(run.folder))):
            starts.setdefault((os.path.dirname(run.folder), match["id"]), []).append(run)
    for several in starts.values():
        if len(several) > 1:
            several.sort(key=lambda run: base_of(run.folder).removeprefix("offline-"))
            whole = several[-1]
            whole.files = [found for run in several for found in run.files]
            runs = [run for run in runs if run is whole or run not in several]
    return runs


def _is_resumed(run: Group) -> bool:
    paths = [found.path for found in run.files if "run-" in found.path]
    return len({part for path in paths for part in path.split("/") if WANDB_START.fullmatch(part)}) > 1


def _depth_below(folder: Folder, run: Group) -> int:
    """How many directories below `folder` the run is."""
    return run.folder.removeprefix(folder.path).count("/")


def _joined(folder: Folder, parts: list[Group]) -> Group:
    """One run of several parts; it is called by the directory, or by its only part."""
    files = {found.path: found for part in parts for found in part.files}
    path = folder.path if len(parts) > 1 else parts[0].path
    return Group(path, list(files.values()), folder=folder.path)


def _is_part(folder: Folder, child: Folder, runs: list[Group], *, has_own: bool, alike: bool) -> bool:
    """Whether the one run found in `child` is a part of the run of the directory above.

    `alike`: the files in the directories of ranks beside each other are called the same.
    """
    if len(runs) != 1 or _is_resumed(runs[0]):
        return False
    if folder.is_store:
        return True
    name = child.name
    fills = runs[0].path == child.path or (runs[0].folder == child.path and (has_own or not runs[0].key))
    is_rank = RANK_FOLDER.fullmatch(name) is not None and (fills or (alike and runs[0].folder == child.path))
    if is_rank or (_PART.fullmatch(name) and fills):
        _mark_ranks(name, runs[0])
        return True
    if name.isdigit() and fills and folder.name.startswith("attempt_"):  # torchrun --log-dir: attempt_0/RANK/stdout.log
        _mark_ranks(name, runs[0])
        return True
    if has_own and _is_chart(child, runs[0]):
        return True
    is_dated = name == "runs" and _DATED.fullmatch(base_of(runs[0].path)) is not None
    return has_own and (name in _STORE or is_dated)


def _is_chart(child: Folder, run: Group) -> bool:
    """Whether `child` holds a line of a chart, or all of them."""
    if not all("tfevents" in base_of(found.path) for found in run.files if found.look.role != "config"):
        return False
    if child.files:
        return any(words.fullmatch(child.name) is not None for words in (_LINE_OF_CHART, _RATE_FOLDER))
    lines = [folder.name for folder in child.folders]
    return _CHART_FOLDER.fullmatch(child.name) is not None and all(map(_SET_FOLDER.fullmatch, lines))


def _is_of_a_rank(name: str) -> bool:
    return name.isdigit() or RANK_FOLDER.fullmatch(name) is not None


def _mark_ranks(name: str, run: Group) -> None:
    if _is_of_a_rank(name):
        for found in run.files:
            if found.look.role in ("stdout", "log"):
                found.look = replace(found.look, role="rank")


def _own_runs(folder: Folder) -> list[Group]:
    """The runs that the files lying in `folder` itself make."""
    settle_numbered(folder)
    settle_documents(folder)
    files = [found for found in folder.files if found.look.role != "config"]
    configs = [found for found in folder.files if found.look.role == "config"]
    state = folder.newest_state()
    if state is not None and _STATE_LOOK is not None:
        files.append(Found(state, _STATE_LOOK))
    if not files:
        return []
    by_key: dict[str, list[Found]] = {}
    for found in files:
        by_key.setdefault(found.look.key, []).append(found)
    if folder.is_store or _is_one_run(by_key):
        key = next((key for key in by_key if key), "")
        path = folder.path if len(files) > 1 or not key else files[0].path
        return [Group(path, files + configs, key, folder.path)]
    return _split(folder, by_key)


def _is_one_run(by_key: dict[str, list[Found]]) -> bool:
    if sum(map(bool, by_key)) <= 1:
        return True
    logs = {key for key, files in by_key.items() if key and any(_is_log(found) for found in files)}
    metrics = {key for key in by_key if key} - logs
    if len(logs) > 1:
        return False
    if len(metrics) <= 1:
        return True
    endings = Counter(os.path.splitext(found.path)[1] for key in metrics for found in by_key[key])
    return max(endings.values()) == 1


def _split(folder: Folder, by_key: dict[str, list[Found]]) -> list[Group]:
    """One run for each key, and one for the files without a key."""
    groups = []
    for key, files in sorted(by_key.items()):
        first = next((found for found in files if found.look.role == "stdout"), files[0])
        groups.append(Group(first.path, files, key, folder.path))
    return groups


def _is_log(found: Found) -> bool:
    return found.look.role in ("stdout", "log", "rank")
