"""An error inside the screens: one line for the person, the whole of it in a private file for whoever mends it.

Textual's own way draws the traceback with every local variable, which here may be a million numbers.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import traceback
from pathlib import Path

from trainmon import version
from trainmon.tails.text import printable

_NO_THREAD = "can't start new thread"  # Python's words where the system refuses one


def told(error: BaseException | None) -> str:
    """One line that says what happened, that nothing was lost, and where the details are."""
    if isinstance(error, MemoryError) or _NO_THREAD in str(error):
        advice = "give it more memory or processes (ulimit -v, ulimit -u, the limit of the job) or name fewer logs"
        return f"trainmon: out of memory; {advice}. The runs and their logs are untouched."
    what = "unknown" if error is None else f"{type(error).__name__}: {printable(str(error), 200)}"
    place = "" if error is None else _keep(error)
    where = f"; please report it with {place}" if place else ""
    return f"trainmon: internal error in the screens ({what}){where}. The runs and their logs are untouched."


def _keep(error: BaseException) -> str:
    """Writes the traceback where only the user reads it; "" when that cannot be done."""
    lines = [f"trainmon {version()}\n", *traceback.format_exception(error)]
    with contextlib.suppress(OSError):
        file, name = tempfile.mkstemp(prefix="trainmon-error-", suffix=".txt")
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("".join(printable(line.rstrip("\n"), 2000) + "\n" for part in lines for line in part.split("\n")))
        return str(Path(name))
    return ""
