"""Options of the commands that open the screens, for terminals and links of every kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

_FPS, _SLOW_FPS = "10", "1"


def terminal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--low-bandwidth``, ``--ascii`` and ``--theme``; each can be set by TRAINMON_<OPTION> too.

    They become environment variables: what they change is read when the screens are imported.
    """
    command = click.option(
        "--theme",
        type=click.Choice(["dark", "light", "auto"]),
        expose_value=False,
        callback=_theme,
        help="Ground of the screens; auto asks the terminal. T changes it.",
    )(command)
    command = click.option(
        "--ascii",
        is_flag=True,
        expose_value=False,
        callback=_switch("TRAINMON_ASCII"),
        help="Nothing but ASCII on the screens.",
    )(command)
    return click.option(
        "--low-bandwidth",
        is_flag=True,
        expose_value=False,
        callback=_switch("TRAINMON_LOW_BANDWIDTH"),
        help="For slow links: one frame a second, nothing moves.",
    )(command)


def _switch(variable: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def turn_on(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            os.environ[variable] = "1"

    return turn_on


def _theme(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        os.environ["TRAINMON_THEME"] = value


def set_pace() -> None:
    """How often Textual may draw; to be called before it is imported."""
    is_slow = os.environ.get("TRAINMON_LOW_BANDWIDTH", "") not in ("", "0")
    os.environ["TEXTUAL_FPS"] = _SLOW_FPS if is_slow else os.environ.get("TEXTUAL_FPS", _FPS)
    if is_slow:
        os.environ["TEXTUAL_ANIMATIONS"] = "none"
