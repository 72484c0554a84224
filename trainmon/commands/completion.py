"""``trainmon completion``: the script that teaches a shell to complete trainmon's command lines."""

from __future__ import annotations

import sys

import click

from trainmon.commands.common import echo, epilog
from trainmon.commands.options import quiet_option

_HOW = {
    "bash": 'add to ~/.bashrc: eval "$(trainmon completion bash)"',
    "zsh": 'add to ~/.zshrc: eval "$(trainmon completion zsh)"',
    "fish": "run once: trainmon completion fish > ~/.config/fish/completions/trainmon.fish",
}


@click.command(
    epilog=epilog(*(f"trainmon completion {shell}  {how}" for shell, how in _HOW.items()), status="0; 2 wrong usage")
)
@click.argument("shell", type=click.Choice(list(_HOW)))
@quiet_option("In a terminal, do not say where to put it.")
def completion(shell: str, quiet: bool) -> None:
    """Print the completion script of a shell: commands, options, checks, signals and files."""
    from click.shell_completion import get_completion_class

    main = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None
    echo(found(main, {}, "trainmon", "_TRAINMON_COMPLETE").source().rstrip("\n"))
    if sys.stdout.isatty() and not quiet:
        click.echo(f"trainmon: {_HOW[shell]}", err=True)
