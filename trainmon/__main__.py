"""``python -m trainmon``, and what the installed command runs."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress

# New objects between two looks for cycles: hundreds of modules are imported, of which none leaves any, and a short
# command ends before there is one. Live sessions look for them more often.
_RARELY = 250_000


def main() -> None:
    """The command line; the version is told before anything of it is loaded."""
    if sys.argv[1:] == ["--version"]:
        from trainmon import version_line

        with suppress(OSError):  # what cannot be written is told below, as of every command
            print(version_line(), flush=True)
            return
    gc.set_threshold(_RARELY)
    try:
        from trainmon.cli import main as command_line

        command_line()
    finally:
        gc.freeze()  # the end of the process looks for no cycles in all that was loaded, a tenth of a short command


if __name__ == "__main__":
    main()
