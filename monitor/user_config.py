"""The user's own configuration: ``trainmon/config.toml`` in the XDG configuration folder, with [alerts] and [keys].

It can name commands, services and keys, so it must be the user's: a file beside a log is never looked at here
(`settings` reads those, for thresholds and facts alone), and one that others may write to is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from trainmon.tails.own_files import own_folder
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

TABLES: Final = ("alerts", "keys")
_MOST_BYTES: Final = 1_000_000


class ConfigError(ValueError):
    """A configuration that cannot be used; one line that names the file and what to do."""


@dataclass(frozen=True, slots=True)
class UserConfig:
    """Its tables as they were written, and one line for each thing in it that trainmon does not have."""

    path: Path
    alerts: Mapping[str, object] = field(default_factory=dict)
    keys: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def config_path() -> Path:
    """Where the file is, whether or not there is one."""
    return own_folder("config") / "config.toml"


def read_config(path: Path | None = None) -> UserConfig:
    """What the file says; nothing where there is none. Raises ConfigError."""
    path = path or config_path()
    try:
        text = _own_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return UserConfig(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}; mend or remove it") from error
    import tomllib  # for those who have a configuration

    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {printable(str(error), 200)}; mend it") from error
    tables: dict[str, Mapping[str, object]] = {}
    for name in TABLES:
        table = document.get(name, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a table: [{name}]")
        tables[name] = table
    unknown = [printable(name, 40) for name in document if name not in TABLES]
    problems = (f"{path}: trainmon does not have {', '.join(unknown[:8])}; left out",) if unknown else ()
    return UserConfig(path, tables["alerts"], tables["keys"], problems)


def _own_text(path: Path) -> str:
    """Raises OSError, and ConfigError for a file that is not the user's alone to write."""
    with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path}: not a plain file; mend or remove it")
        if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
            raise ConfigError(f"{path}: belongs to another user; it may name commands, so it must be yours")
        if found.st_mode & stat.S_IWOTH:
            raise ConfigError(f"{path}: everyone may write to it; chmod o-w it, since it may name commands")
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{path}: over {_MOST_BYTES:,} bytes; mend or remove it")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from error
