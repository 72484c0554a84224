"""Settings files that lie beside a log: the run's trainmon.toml, and the trainer's own configuration.

They are another person's word (DESIGN.md): they may set thresholds and tell facts of the run, and nothing else. They
are read as data, never run, and every problem is one line that names the file and what to do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from pathlib import PurePath

from trainmon.monitor.settings_text import plain_settings, scalar
from trainmon.monitor.thresholds import DEFAULTS, REST, Thresholds
from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.config_facts import config_facts
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

OWN_NAME = "trainmon.toml"
_SCHEMA = 1  # of that file
_MAX_ENTRIES = 20_000
_MAX_LINE = 500  # a setting that matters is short, and matching stays linear
_YAML_LINE = lazy(r"^(?P<indent> *)(?P<key>[\w./-]{1,80}) *:(?: +(?P<value>[^#\n]*?))?(?: *#.*)?$")
_TEXTS = frozenset((".txt", ".gin", ".cfg", ".ini"))
_FACTS = frozenset(
    [
        "total_steps",
        "batch_size",
        "seq_length",
        "tokens_per_batch",
        "parameters",
        "active_parameters",
        "clip_threshold",
        "peak_lr",
        "warmup_steps",
        "precision",
        "world_size",
        "gpu",
        "gpu_memory_bytes",
        "max_response_length",
        "optimizer",
        "checkpoint_interval",
        "num_experts",
        "framework",
    ]
)


@dataclass(slots=True)
class Settings:
    """What the settings files of a run say so far. `thresholds`: name -> (value, file and owner); `problems`: file ->
    one line."""

    thresholds: dict[str, tuple[float, str]] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    kept: str = ""  # the calibration that has looked at the defaults and left those it does not name
    problems: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, content: bytes, owner: str = "") -> None:
        """Takes in one file of `owner`; never raises on what it holds."""
        self.problems.pop(path, None)
        try:
            text = content.decode("utf-8-sig")
            if PurePath(path).name == OWN_NAME:
                self._own(path, _toml(text), owner)
            else:
                for key, value in config_facts(*_flat(_parse(path, text))):
                    self.facts.setdefault(key, value)
        except (ValueError, RecursionError) as error:
            self.problems[path] = f"{path}: not read as settings ({printable(str(error), 120)}); mend or remove it"

    def limits(self, flags: Thresholds) -> Thresholds:
        """The thresholds with these files' values under those of the command line."""
        merged = Thresholds(sources={REST: f"default kept by {self.kept}"} if self.kept else {})
        for name, (value, path) in self.thresholds.items():
            merged = merged.override({name: value}, source=path)
        for name in flags.values:
            merged = merged.override({name: flags[name]}, source=flags.source(name))
        return merged

    def _own(self, path: str, document: Mapping[str, object], owner: str) -> None:
        told = [f"owner: {printable(owner, 60)}"] if owner else []
        told += _calibrated(document.get("calibration"))
        source = f"{path} ({'; '.join(told)})" if told else path
        if isinstance(document.get("calibration"), Mapping):
            self.kept = source
        if document.get("schema", _SCHEMA) != _SCHEMA:
            raise ValueError(f"schema {printable(str(document['schema']), 20)}: this trainmon knows {_SCHEMA}")
        unknown = sorted(set(document) - {"thresholds", "facts", "schema", "calibration"})
        for name, value in _leaves(document.get("thresholds", {})):
            if name not in DEFAULTS:
                unknown.append(f"thresholds.{name}")
            elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < as_float(value) < math.inf:
                raise ValueError(f"thresholds.{name} must be a number above 0")
            else:
                self.thresholds[name] = (float(value), source)
        for name, value in _leaves(document.get("facts", {})):
            if name not in _FACTS or isinstance(value, bool):
                unknown.append(f"facts.{name}")
            elif isinstance(value, (int, float)):
                if (number := _finite(value)) is None:
                    raise ValueError(f"facts.{name} must be a finite number")
                self.facts[name] = number
            elif isinstance(value, str):
                self.facts[name] = value[:120]
        if unknown:
            names = ", ".join(printable(name, 60) for name in unknown[:8])
            self.problems[path] = f"{path}: settings that trainmon does not have, left out: {names}"


def _calibrated(calibration: object) -> list[str]:
    """When and on how many runs the thresholds were learned, if the file says so."""
    if not isinstance(calibration, Mapping):
        return []
    date, runs = calibration.get("date"), calibration.get("runs")
    when = f"{date:%Y-%m-%d}" if isinstance(date, datetime) else ""
    count = len(runs) if isinstance(runs, list) else 0
    return [f"calibrated {when} on {count} run{'s' if count != 1 else ''}".replace("  ", " ")]


def _parse(path: str, text: str) -> object:
    suffix = PurePath(path).suffix.lower()
    if suffix == ".json":
        return json.loads(text)
    if suffix == ".toml":
        return _toml(text)
    if suffix in (".yaml", ".yml"):
        return _plain_yaml(text)
    if PurePath(path).parent.name == "params" and suffix not in _TEXTS:  # MLflow's: one setting a file
        return {PurePath(path).name: scalar(text.strip())}
    if suffix in _TEXTS:
        return json.loads(text) if text.lstrip()[:1] == "{" else plain_settings(text)
    return {}


def _toml(text: str) -> dict[str, object]:
    import tomllib  # for those who have settings

    return tomllib.loads(text)


def _plain_yaml(text: str) -> dict[str, object]:
    """The ``key: value`` lines of a YAML file, nested by indent, keys joined with "/".

    Scalars are all that facts need: tags, anchors, lists and blocks are passed over, never resolved.

    >>> _plain_yaml("optimizer:\\n  lr: 3e-4  # peak\\nmax_steps: 1000\\nname: !!python/object x")
    {'optimizer/lr': 0.0003, 'max_steps': 1000.0, 'name': '!!python/object x'}
    """
    found: dict[str, object] = {}
    open_keys: list[tuple[int, str]] = []
    for line in text.splitlines()[:_MAX_ENTRIES]:
        match = _YAML_LINE.match(line) if len(line) <= _MAX_LINE else None
        if match is None:
            continue
        indent = len(match["indent"])
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        path = "/".join((*(key for _, key in open_keys[-8:]), match["key"]))
        value = (match["value"] or "").strip()
        if not value:
            open_keys.append((indent, match["key"]))
            continue
        found[path] = scalar(value.strip("\"'"))
    return found


def _leaves(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Name and value of everything in nested tables, names joined with dots; breadth of the input only."""
    waiting: list[tuple[str, object]] = [(prefix, value)]
    seen = 0
    while waiting and seen < _MAX_ENTRIES:
        name, item = waiting.pop()
        seen += 1
        if isinstance(item, Mapping):
            waiting += [(f"{name}.{key}" if name else str(key), inner) for key, inner in item.items()]
        elif name:
            yield name, item


def _flat(document: object) -> tuple[dict[str, float | None], dict[str, str]]:
    values: dict[str, float | None] = {}
    texts: dict[str, str] = {}
    for name, value in _leaves(document):
        key = name.replace(".", "/").removesuffix("/value")  # W&B and SwanLab put each value in an object
        if isinstance(value, bool):
            texts[key] = str(value)
        elif isinstance(value, (int, float)):
            values[key] = _finite(value)
        elif isinstance(value, str):
            texts[key] = value
    return values, texts


def _finite(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
