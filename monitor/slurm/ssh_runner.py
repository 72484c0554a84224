"""Running squeue and sacct on another host, through the connection that its logs come by."""

from __future__ import annotations

import shlex
import stat
import subprocess
from collections.abc import Sequence
from concurrent.futures import TimeoutError as TooLate
from typing import Final

from trainmon.monitor.slurm.runner import NOT_FOUND, TIMED_OUT, Answer
from trainmon.tails.ssh.address import Address
from trainmon.tails.ssh.ask import AskPiece, HostDownError
from trainmon.tails.ssh.command import quiet_environment
from trainmon.tails.ssh.hosts import hosts
from trainmon.tails.ssh.master import Master
from trainmon.tails.ssh.trouble import advice, last_line

# Where Slurm lies on clusters whose shells find it only after a login.
_PLACES: Final = (
    "/usr/local/bin:/opt/slurm/bin:/usr/local/slurm/bin:/opt/slurm/current/bin:/cm/shared/apps/slurm/current/bin"
)
_FIND: Final = f'PATH="$PATH:{_PLACES}"; export PATH; exec "$@"'
_SSH_FAILED: Final = 255
_ASK_S: Final = 10.0
_MOST_BYTES: Final = 64 << 20


def is_file_there(address: Address, path: str) -> bool:
    """Whether there is a regular file at `path` on the host; False when it does not answer."""
    try:
        piece = hosts().host(address).ask_for(AskPiece(path, 0, 0)).result(_ASK_S)
    except (HostDownError, TooLate):
        return False
    return piece.status is not None and stat.S_ISREG(piece.status.mode or 0)


class SshRunner:
    """Runs commands on the host at `address`, never asking anything. Each word is quoted for the shell there."""

    def __init__(self, address: Address, master: Master | None = None) -> None:
        self._master = master or hosts().master(address)

    def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
        """The answer of `argv`."""
        problem = self._master.prepare()
        if problem:
            return self._failed(problem)
        words = shlex.join(["sh", "-c", _FIND, "sh", *argv])
        try:
            done = subprocess.run(
                self._master.argv(words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                start_new_session=True,
                env=quiet_environment(),
            )
        except subprocess.TimeoutExpired:
            return Answer(TIMED_OUT, stderr=f"no answer within {timeout_s:.0f} s")
        except OSError as error:
            return Answer(NOT_FOUND, stderr=str(error.strerror or error))
        if done.returncode == _SSH_FAILED:  # ssh's own end, as far as can be told: squeue ends with 1
            return self._failed(self._master.with_cause(last_line(done.stderr, self._master.way)) or "ssh failed")
        return Answer(done.returncode, done.stdout[:_MOST_BYTES], done.stderr.decode("utf-8", "replace"))

    def _failed(self, reason: str) -> Answer:
        return Answer(_SSH_FAILED, stderr=f"{reason}; {advice(self._master.address, reason, self._master.options)}")
