"""The formats that are known. To add one: write the module, add its line here.

Other packages add theirs through the entry-point group ``trainmon.formats``. A format's module is imported only when
a file's first bytes may be its own: `Known.opening` and `Known.surest` say what its `sniff` can never answer.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module

from trainmon.tails.formats.base import Format
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_GROUP = "trainmon.formats"


@dataclass(frozen=True, slots=True)
class Known:
    """`path`: "module:class". `opening`: what the head must match for `sniff` to be above 0; `surest`: its most."""

    path: str
    opening: re.Pattern[bytes]
    surest: float = 1.0


_OPENS_JSON = lazy(rb"(?:\xef\xbb\xbf)?\s*[{\[]")
_NAMES_STEP = lazy(rb"(?i)[^\n]{0,4000}(?:step|iter|epoch|update)")
# name -> where it is. Order breaks ties of `sniff`, earlier first.
FORMATS: dict[str, Known] = {
    # A frame's length is 8 bytes; none of 4 GiB is ever read.
    "tfevents": Known("trainmon.tails.formats.tfevents:TfEvents", re.compile(rb"(?s).{4}\0{4}")),
    "wandb": Known("trainmon.tails.formats.wandb_offline:WandbOffline", re.compile(rb":W&B")),
    "swanlab": Known("trainmon.tails.formats.swanlab:SwanLabBackup", re.compile(rb":SWL")),
    "sqlite": Known("trainmon.tails.formats.sqlite_store:SqliteStore", re.compile(rb"SQLite format 3\0")),
    "parquet": Known("trainmon.tails.formats.parquet:Parquet", re.compile(rb"PAR1")),
    "newest first": Known("trainmon.tails.formats.newest_first:NewestFirst", _NAMES_STEP, surest=0.91),
    "json rows": Known("trainmon.tails.formats.json_rows:JsonRows", lazy(rb"\s*\[\s*\""), surest=0.98),
    "json": Known("trainmon.tails.formats.json_document:JsonDocument", _OPENS_JSON, surest=0.95),
    "jsonl": Known("trainmon.tails.formats.jsonl:JsonLines", re.compile(rb"(?s)[^{]*\{"), surest=0.9),
    "csv": Known("trainmon.tails.formats.csv_table:CsvTable", re.compile(rb"(?!\s*[{\[])"), surest=0.85),
    "stdout": Known("trainmon.tails.formats.stdout:Stdout", re.compile(rb""), surest=0.3),
}


@cache
def added() -> dict[str, str]:
    """Formats of other packages: name -> "module:class"."""
    if not any(_declares(place) for place in sys.path):
        return {}
    from importlib import metadata

    return {point.name: point.value for point in metadata.entry_points(group=_GROUP)}


def _declares(place: str) -> bool:
    """Whether a package installed in `place` declares formats. Asking ``importlib.metadata`` takes 50 ms or more."""
    try:
        names = [entry.name for entry in os.scandir(place or ".") if entry.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return os.path.isfile(place)
    for name in names:
        try:
            with open(os.path.join(place, name, "entry_points.txt"), "rb") as points:
                if f"[{_GROUP}]".encode() in points.read().replace(b" ", b""):
                    return True
        except OSError:
            continue
    return False


def format_class(name: str) -> type[Format]:
    """The class registered under `name`. Raises KeyError when there is none."""
    path = FORMATS[name].path if name in FORMATS else added()[name]
    module, _, attribute = path.partition(":")
    cls: type[Format] = getattr(import_module(module), attribute)
    return cls


def detect(head: bytes, source: str) -> Format | None:
    """The format whose `sniff` is surest of `head`, made for `source`; None when none recognises it."""
    best: type[Format] | None = None
    best_score = 0.0
    for name in (*FORMATS, *added()):
        known = FORMATS.get(name)
        if known is not None and (known.surest <= best_score or not known.opening.match(head)):
            continue
        cls = format_class(name)
        score = cls.sniff(head)
        if score > best_score:
            best, best_score = cls, score
    return best(source) if best is not None else None
