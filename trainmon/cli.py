"""The command line."""

import click

from trainmon import version


@click.group()
@click.version_option(version(), prog_name="trainmon")
def main() -> None:
    """See which training run is in trouble, what kind, since which step, and what to do."""
