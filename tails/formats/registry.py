"""The formats that are known. To add one: write the module, add its line here.

Other packages add theirs through the entry-point group ``trainmon.formats``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata

from trainmon.tails.formats.base import Format

# name -> "module:class". Order breaks ties of `sniff`, earlier first. Modules are imported when a file is sniffed.
FORMATS: dict[str, str] = {
    "tfevents": "trainmon.tails.formats.tfevents:TfEvents",
    "wandb": "trainmon.tails.formats.wandb_offline:WandbOffline",
    "parquet": "trainmon.tails.formats.parquet:Parquet",
    "json": "trainmon.tails.formats.json_document:JsonDocument",
    "jsonl": "trainmon.tails.formats.jsonl:JsonLines",
    "csv": "trainmon.tails.formats.csv_table:CsvTable",
    "stdout": "trainmon.tails.formats.stdout:Stdout",
}


@cache
def _entry_points() -> dict[str, str]:
    return {point.name: point.value for point in metadata.entry_points(group="trainmon.formats")}


def format_class(name: str) -> type[Format]:
    """The class registered under `name`. Raises KeyError when there is none."""
    module, _, attribute = {**_entry_points(), **FORMATS}[name].partition(":")
    cls: type[Format] = getattr(import_module(module), attribute)
    return cls


def detect(head: bytes, source: str) -> Format | None:
    """The format whose `sniff` is surest of `head`, made for `source`; None when none recognises it."""
    best: type[Format] | None = None
    best_score = 0.0
    for name in (*FORMATS, *_entry_points()):
        cls = format_class(name)
        score = cls.sniff(head)
        if score > best_score:
            best, best_score = cls, score
    return best(source) if best is not None else None
