"""Event files and a metrics file of one experiment, which only their names bring together.

verl writes ``exp.jsonl`` and ``tensorboard_log/exp/events.out.tfevents...``: one run, told twice.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.scan import base_of

if TYPE_CHECKING:
    from trainmon.tails.grouping import Group

_COLLECTOR = lazy(r"tensorboard(?:[_-]?logs?)?|tb(?:[_-]?logs?)?|runs|events|summar(?:y|ies)", re.IGNORECASE)
_TELLS_NOTHING = lazy(r"\d+|version_\d+")


def joined_by_name(root: str, runs: list[Group]) -> list[Group]:
    """`runs`, with each that is nothing but event files joined to the only run whose file is called as its directory.

    The directory of the events must lie below one that collects such, beside which or below which the file lies; a
    name that several runs have, or that says nothing on its own, brings nothing together.
    """
    if len(runs) < 2:
        return runs
    events = {id(run): place for run in runs if (place := _place_of_events(root, run)) is not None}
    files = {id(run): name for run in runs if id(run) not in events and (name := _name_of_file(run))}
    if not events or not files:
        return runs
    pairs: dict[int, int] = {}
    for wide in (False, True):  # the name alone, or with the directory above it
        told_events = {key: _name(place, wide=wide) for key, (_, place) in events.items()}
        pairs |= _pairs(told_events, {key: _name(place, wide=wide) for key, place in files.items()})
    by_id = {id(run): run for run in runs}
    pairs = {event: file for event, file in pairs.items() if _is_below(by_id[file].folder, events[event][0])}
    for event, file in pairs.items():
        by_id[file].files += [found for found in by_id[event].files if found not in by_id[file].files]
    return [run for run in runs if id(run) not in pairs]


def _is_below(path: str, above: str) -> bool:
    return f"{path}/".startswith(f"{above}/")


def _place_of_events(root: str, run: Group) -> tuple[str, str] | None:
    """The directory in which the collecting one lies, and that of the events; None where it is no such run."""
    measured = [found for found in run.files if found.look.role != "config"]
    if not measured or not all("tfevents" in base_of(found.path) for found in measured):
        return None
    *above, _ = run.folder.removeprefix(root).strip("/").split("/")
    at = next((at for at, part in enumerate(above) if _COLLECTOR.fullmatch(part)), None)
    if at is None:
        return None
    return "/".join((root.rstrip("/"), *above[:at])), run.folder


def _name_of_file(run: Group) -> str:
    """The path of the file that names `run`, without its ending; "" where a directory does."""
    if run.path == run.folder:
        measured = [found.path for found in run.files if found.look.role != "config" and found.look.key]
        return measured[0].rpartition(".")[0] if len(measured) == 1 else ""
    return run.path.rpartition(".")[0]


def _name(path: str, *, wide: bool) -> str:
    parts = path.split("/")
    return "" if _TELLS_NOTHING.fullmatch(parts[-1]) and not wide else "/".join(parts[-2:] if wide else parts[-1:])


def _pairs(events: dict[int, str], files: dict[int, str]) -> dict[int, int]:
    many_events, many_files = Counter(events.values()), Counter(files.values())
    by_name = {name: key for key, name in files.items()}
    return {
        key: by_name[name] for key, name in events.items() if name and many_events[name] == 1 and many_files[name] == 1
    }
