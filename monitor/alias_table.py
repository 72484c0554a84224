"""The table of key names, aliases.toml, as it is looked up.

``docs/reference.py`` keeps what it says beside it as JSON, which is read in a fiftieth of the time. It is believed of
the very text that it was made from alone, so that a change of the table counts at once.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from trainmon.tails.quick_dataclass import dataclass

SOURCE: Final = Path(__file__).with_name("aliases.toml")
QUICK: Final = SOURCE.with_suffix(".json")


@dataclass(frozen=True, slots=True)
class Aliases:
    """`exact`: whole keys -> (place in their signal's list, signal); `patterns`: (place, signal, expression) in the
    order of the table; `units`: signal -> what its values are in when the key does not say."""

    exact: dict[str, tuple[int, str]]
    patterns: tuple[tuple[int, str, str], ...]
    units: dict[str, str]


@cache
def aliases() -> Aliases:
    """The table."""
    return of_entries(_entries())


def of_entries(entries: list[dict[str, Any]]) -> Aliases:
    """The table of what a file lists: dictionaries of signal, keys, patterns and unit."""
    exact: dict[str, tuple[int, str]] = {}
    patterns: list[tuple[int, str, str]] = []
    units: dict[str, str] = {}
    for entry in entries:
        signal = entry["signal"]
        if "unit" in entry:
            units[signal] = entry["unit"].lower()
        for place, key in enumerate(entry.get("keys", ())):
            exact.setdefault(key, (place, signal))
        for place, pattern in enumerate(entry.get("patterns", ())):
            patterns.append((1000 + place, signal, pattern))
    return Aliases(exact, tuple(patterns), units)


def _entries() -> list[dict[str, Any]]:
    text = SOURCE.read_bytes()
    try:
        quick: dict[str, Any] = json.loads(QUICK.read_bytes())
    except FileNotFoundError:
        quick = {}
    if quick.get("of") == zlib.crc32(text):
        found: list[dict[str, Any]] = quick["alias"]
        return found
    return _parsed(text)


def _parsed(text: bytes) -> list[dict[str, Any]]:
    import tomllib  # for those who change the table

    found: list[dict[str, Any]] = tomllib.loads(text.decode())["alias"]
    return found


def quick_form() -> str:
    """What stands in aliases.json for the table as it is."""
    text = SOURCE.read_bytes()
    return json.dumps({"of": zlib.crc32(text), "alias": _parsed(text)}, ensure_ascii=False, indent=0) + "\n"
