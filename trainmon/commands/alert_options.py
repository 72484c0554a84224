"""Options that say who is told of an alert, and how; under them the table [alerts] of the user's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmon.commands.common import fail, say_problems_of

if TYPE_CHECKING:
    from trainmon.monitor.sinks.settings import AlertSettings
    from trainmon.monitor.user_config import UserConfig

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--bell", "bell", {"is_flag": True, "help": "Ring the terminal's bell for an alert."}),
    (
        "--desktop",
        "desktop",
        {
            "type": click.Choice(["auto", "osc9", "osc777"]),
            "help": "Desktop notification through the terminal, tmux and ssh too.",
        },
    ),
    (
        "--alert-log",
        "log",
        {
            "type": click.Path(dir_okay=False, path_type=Path),
            "metavar": "FILE",
            "help": "Add each alert to FILE as JSON.",
        },
    ),
    (
        "--on-alert",
        "on_alert",
        {"metavar": "CMD", "help": "Run CMD (no shell) for each alert, which it gets as JSON on standard input."},
    ),
    (
        "--notify",
        "notify",
        {
            "metavar": "URL",
            "multiple": True,
            "help": "Mail, Slack, PagerDuty...: a URL of apprise (pip install 'trainmon[notify]').",
        },
    ),
    (
        "--alert-level",
        "level",
        {
            "type": click.Choice(["page", "fail", "warn"]),
            "help": "What is told: what wakes a person (page, the default), every FAIL, or every WARN too.",
        },
    ),
    (
        "--alert-standing",
        "standing",
        {"is_flag": True, "help": "Tell also what is wrong already when watching begins."},
    ),
    (
        "--ping",
        "ping",
        {
            "metavar": "URL|FILE",
            "multiple": True,
            "help": "Ask for URL or touch FILE once a minute, as long as all runs can be seen.",
        },
    ),
    (
        "--shared-state",
        "shared_state",
        {
            "type": click.Path(file_okay=False, path_type=Path),
            "metavar": "DIR",
            "help": "Share acknowledgements with all who watch with the same DIR.",
        },
    ),
)
NAMES = tuple(name for _, name, _ in _OPTIONS)


def alert_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, as one argument `alert_flags`; each can be set by TRAINMON_<OPTION> too."""

    @functools.wraps(command)
    def gathered(*args: Any, **kwargs: Any) -> Any:
        flags = {name: kwargs.pop(f"alert_{name}") for name in NAMES}
        return command(*args, alert_flags=flags, **kwargs)

    result: Callable[..., Any] = gathered
    for flag, name, settings in reversed(_OPTIONS):
        variable = f"TRAINMON_{flag[2:].upper().replace('-', '_')}"
        result = click.option(flag, f"alert_{name}", envvar=variable, **settings)(result)
    return result


def wanted_by(config: UserConfig, flags: Mapping[str, object]) -> AlertSettings | None:
    """What the configuration and the flags ask for, None for nothing. One line and status 2 for what cannot be."""
    from trainmon.monitor.sinks.base import SinkError
    from trainmon.monitor.sinks.settings import from_config

    try:
        settings = from_config(config.alerts)
    except SinkError as error:
        fail(f"{config.path}: {error}")
    try:
        wanted = settings.with_flags(flags)
    except SinkError as error:
        raise click.UsageError(str(error)) from error
    return wanted if wanted.is_anything else None


def config_of_user() -> UserConfig:
    """The user's configuration; one line and status 2 where it cannot be used."""
    from trainmon.monitor.user_config import ConfigError, read_config

    try:
        config = read_config()
    except ConfigError as error:
        fail(str(error))
    say_problems_of(config.problems)
    return config
