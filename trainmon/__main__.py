"""``python -m trainmon``, and what the installed command runs."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # of `signal`, which loads more than all the rest of this module

# Until a command runs, and from its end on, Ctrl-C ends the process as it would one of no Python: with no traceback
# out of the middle of an import. Who has chosen not to hear it (nohup, a shell's background job) is left alone.
_HEARS = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _HEARS:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import gc  # noqa: E402 - what comes first comes first
import sys  # noqa: E402
from contextlib import suppress  # noqa: E402

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

        if _HEARS:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        command_line()
    except KeyboardInterrupt:  # before the command line has begun to look for it
        sys.exit(130)
    finally:
        if _HEARS:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        gc.freeze()  # the end of the process looks for no cycles in all that was loaded, a tenth of a short command


if __name__ == "__main__":
    main()
