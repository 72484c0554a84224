"""``python -m trainmon``, and what the installed command runs."""

from __future__ import annotations

import sys
from contextlib import suppress


def main() -> None:
    """The command line; the version is told before anything of it is loaded."""
    if sys.argv[1:] == ["--version"]:
        from trainmon import version_line

        with suppress(OSError):  # what cannot be written is told below, as of every command
            print(version_line(), flush=True)
            return
    from trainmon.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
