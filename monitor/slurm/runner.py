"""Running a scheduler's command where the logs lie: here, or at the far end of a connection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from trainmon.tails.quick_dataclass import dataclass

# Times in UTC and words in English, whatever the user's settings.
_PLAIN: Final = ("env", "TZ=UTC", "LC_ALL=C", "SLURM_TIME_FORMAT=standard")
_MOST_BYTES: Final = 64 << 20
NOT_FOUND: Final = 127
TIMED_OUT: Final = 124


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command gave. `status`: its exit status; 127 when there is no such program, 124 when it took too long."""

    status: int
    stdout: bytes = b""
    stderr: str = ""

    @property
    def ok(self) -> bool:
        """Whether the command says that it worked."""
        return self.status == 0


class Runner(Protocol):
    """Runs one command and gives its answer; never raises for what the command does.

    `argv` is a list of words and no shell's text: a runner that has to pass it through a shell (ssh) must quote each
    word (`shlex.join`). `timeout_s`: after so long the command is ended and the answer is `TIMED_OUT`.
    """

    def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
        """The answer of `argv`."""
        ...


def plainly(argv: Sequence[str]) -> list[str]:
    """`argv` so that its answer does not depend on time zone, language or the user's own formats.

    >>> plainly(["squeue", "-h"])[-2:]
    ['squeue', '-h']
    """
    return [*_PLAIN, *argv]


class LocalRunner:
    """Runs commands on this machine, with nothing on their standard input and in no shell.

    >>> LocalRunner().run(["echo", "a b; c"], 5.0).stdout
    b'a b; c\\n'
    >>> LocalRunner().run(["no-such-program-here"], 5.0).status == NOT_FOUND
    True
    """

    def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
        """The answer of `argv`."""
        program = next((word for word in argv if word != "env" and "=" not in word), argv[0])
        if not _is_here(program):
            return Answer(NOT_FOUND, stderr=f"{program}: not found")
        import subprocess  # for machines that have a scheduler

        environ = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SACCT_"))}
        try:
            done = subprocess.run(
                list(argv),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                env=environ,
                start_new_session=True,
            )
        except FileNotFoundError:
            return Answer(NOT_FOUND, stderr=f"{argv[0]}: not found")
        except subprocess.TimeoutExpired:
            return Answer(TIMED_OUT, stderr=f"no answer within {timeout_s:.0f} s")
        except OSError as error:
            return Answer(126, stderr=f"{argv[0]}: {error.strerror or error}")
        return Answer(done.returncode, done.stdout[:_MOST_BYTES], done.stderr.decode("utf-8", "replace"))


def _is_here(program: str) -> bool:
    """Whether there is such a program. Most machines have no scheduler, and asking in vain starts a process each time.

    >>> _is_here("env"), _is_here("/no/such/program"), _is_here("no-such-program-here")
    (True, False, False)
    """
    places = [""] if os.sep in program else os.get_exec_path()
    return any(os.access(Path(place, program), os.X_OK) for place in places)
