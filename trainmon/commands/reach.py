"""What is passed on to ssh, for every command that reads targets; and the questions ssh asks before a screen starts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_KEY = "trainmon.ssh"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def ssh_options(*, short_o: bool = True, history: str = "all") -> Callable[[Command], Command]:
    """The options -F, -J, -i and -o of ssh, --ssh-rate and --ssh-history (`history` when it is not given). `short_o`
    False where -o means something else.

    Put it next to the function: when one of its arguments names another host, it is connected to before the function
    runs, and what must be asked (password, second factor, host key) is asked in the terminal.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(*args: Any, **kwargs: Any) -> Any:
            _reach(kwargs, click.get_current_context().meta.get(_KEY, {}))
            return command(*args, **kwargs)

        options = (
            _option("-F", "--ssh-config", metavar="FILE", help="ssh: the configuration file, as its -F."),
            _option("-J", "--ssh-jump", metavar="HOST", help="ssh: through this host, as its -J."),
            _option("-i", "--ssh-identity", metavar="FILE", multiple=True, help="ssh: a key, as its -i."),
            _option(
                *(("-o",) if short_o else ()),
                "--ssh-option",
                metavar="NAME=VALUE",
                multiple=True,
                help="ssh: a setting, as its -o.",
            ),
            _option("--ssh-rate", metavar="BYTES", help="ssh: most bytes a second for history from a host (500K, 2M)."),
            _option(
                "--ssh-history",
                metavar="BYTES",
                default=history,
                help=f"ssh: of longer logs only the head and so much of the end, or `all`; unless given: {history}.",
            ),
        )
        wrapped: Any = run
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def _option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(*names, expose_value=False, callback=_keep, **settings)


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    kept = context.meta.setdefault(_KEY, {})
    kept[option.name] = _bytes(value) if option.name in ("ssh_rate", "ssh_history") else value


def _bytes(text: str | None) -> int | None:
    if text is None or text == "all":
        return None
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    try:
        size = int(float(number) * _UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise click.BadParameter(f"{text} is no number of bytes; write 500K, 2M or 1G")
    return size


def _reach(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Connects to the hosts that the arguments name; problems are told by whoever reads there."""
    addresses = [remote.address for remote in map(_remote, _words(arguments)) if remote is not None]
    if not addresses:
        return
    from trainmon.tails.ssh import hosts
    from trainmon.tails.ssh.options import SshOptions

    hosts.configure(
        SshOptions(
            config_file=given.get("ssh_config") or "",
            jump=given.get("ssh_jump") or "",
            identities=tuple(given.get("ssh_identity") or ()),
            options=tuple(given.get("ssh_option") or ()),
            rate=given.get("ssh_rate"),
            history_bytes=given.get("ssh_history"),
        )
    )
    hosts.connect_in_terminal(addresses)


def _words(arguments: Mapping[str, Any]) -> list[str]:
    """The targets among a command's arguments."""
    words: list[str] = []
    for name in ("target", "targets", "run", "runs"):
        value = arguments.get(name)
        words += [value] if isinstance(value, str) else list(value or ())
    return words


def _remote(text: str) -> Any:
    from trainmon.tails.here import here
    from trainmon.tails.target import TargetError, parse

    try:
        return parse(text, here()).remote
    except TargetError:
        return None
