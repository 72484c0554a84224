"""Options that several commands take. Each is a decorator; what it hands to the command is told in its docstring."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmon.commands import completing

if TYPE_CHECKING:
    from trainmon.monitor.thresholds import Thresholds

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def json_option(schema: str, *, where: str = "") -> Decorator:
    """``--json`` as `as_json`: one document of `schema`. `where`: with which other option alone."""
    told = f"{where}: one" if where else "One"
    return click.option("--json", "as_json", is_flag=True, help=f"{told} JSON document (schema {schema}) on stdout.")


def strict_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--strict``."""
    return click.option(
        "--strict", is_flag=True, help="A verdict of WARN also gives exit status 1 (advice does not make one)."
    )(command)


def signals_option(told: str) -> Decorator:
    """``-s``, ``--signal`` as `signals`, whose help is `told`."""
    return click.option(
        "-s", "--signal", "signals", multiple=True, metavar="NAME", shell_complete=completing.signals, help=told
    )


def by_option(told: str) -> Decorator:
    """``--by`` as `axis`, whose help is `told`."""
    return click.option("--by", "axis", type=click.Choice(["tokens", "flops", "step", "time"]), help=told)


def output_option(told: str, **settings: Any) -> Decorator:
    """``-o``, ``--output``: a file to write."""
    return click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help=told, **settings)


def _finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and value != value:
        raise click.BadParameter("nan is not a number above 0")
    return value


def limit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --threshold and --window."""
    command = click.option(
        "--threshold",
        type=click.FloatRange(min=0, min_open=True, max=1e12),
        callback=_finite,
        help="Clip threshold c of the gradient norm (1.0).",
    )(command)
    return click.option(
        "--window",
        type=click.IntRange(min=10, max=100_000),
        help="Window W of the spike score, in logged values (100).",
    )(command)


def _no_cache(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        os.environ["TRAINMON_CACHE"] = "off"  # for the worker processes too


def cache_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --no-cache."""
    return click.option(
        "--no-cache",
        is_flag=True,
        expose_value=False,
        callback=_no_cache,
        help="Read large logs anew and keep nothing of them (as TRAINMON_CACHE=off).",
    )(command)


def quiet_option(told: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option --quiet, whose help says what is `told` all the same."""
    return click.option("-q", "--quiet", is_flag=True, help=told)


def limits_of(threshold: float | None, window: int | None) -> Thresholds:
    """The thresholds that the flags set."""
    from trainmon.monitor.thresholds import Thresholds

    limits = Thresholds()
    if threshold is not None:
        limits = limits.override({"clip": threshold}, source="flag --threshold")
    if window is not None:
        limits = limits.override({"window": float(window)}, source="flag --window")
    return limits


def history_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --no-history."""

    def turn_off(_context: click.Context, _option: click.Parameter, value: bool) -> None:
        if value:
            os.environ["TRAINMON_HISTORY"] = "off"

    return click.option(
        "--no-history",
        is_flag=True,
        expose_value=False,
        callback=turn_off,
        help="Do not keep the verdict for `trainmon history`.",
    )(command)


def work_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --jobs and --dask: `processes` and `cluster`."""
    command = click.option(
        "--dask",
        "cluster",
        metavar="ADDRESS",
        help="Let the workers of this dask scheduler (tcp://HOST:PORT) read and judge; they must see the same files.",
    )(command)
    return click.option(
        "--jobs",
        "processes",
        type=click.IntRange(min=1, max=256),
        help="Processes that read and judge: all cores where that pays.",
    )(command)
