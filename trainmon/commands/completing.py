"""What the shell is offered for arguments that are no plain files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def targets(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and directories, by the shell itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def checks(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of checks and their groups."""
    from click.shell_completion import CompletionItem

    from trainmon.monitor.focus import CHECK_IDS

    names = sorted({*CHECK_IDS, *(check.partition(".")[0] for check in CHECK_IDS)})
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def signals(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of signals."""
    from click.shell_completion import CompletionItem

    from trainmon.monitor.signals import SIGNALS

    return [CompletionItem(each.id, help=each.title) for each in SIGNALS if each.id.startswith(incomplete)]
