"""``trainmon completion``: the script that teaches a shell to complete trainmon's command lines."""

from __future__ import annotations

import click

from trainmon.commands.common import echo

_HOW = {
    "bash": 'add to ~/.bashrc:  eval "$(trainmon completion bash)"',
    "zsh": 'add to ~/.zshrc:  eval "$(trainmon completion zsh)"',
    "fish": "run once:  trainmon completion fish > ~/.config/fish/completions/trainmon.fish",
}


@click.command(
    epilog="\b\n" + "\n".join(f"{shell}: {how}" for shell, how in _HOW.items()) + "\n\nExit status: 0; 2 wrong usage."
)
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    """Print the completion script of a shell: commands, options, checks, signals and files."""
    from click.shell_completion import get_completion_class

    main = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None
    echo(found(main, {}, "trainmon", "_TRAINMON_COMPLETE").source().rstrip("\n"))
