"""Processes that work for this one and end with it: however it ends, killed too, none of them stays behind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection


@contextmanager
def worker_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of so many processes; what they have not done when it is left is given up.

    Ctrl-C reaches every process of a terminal: here it is this one's alone, which ends the others. Submit work inside
    `quietly_begun`.
    """
    import multiprocessing  # these take longer to import than a small log to read
    from concurrent.futures import ProcessPoolExecutor

    # A copy of this process begins at once, but must not be made while other threads hold locks.
    method = "fork" if threading.active_count() == 1 and "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    end, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(processes, context, initializer=_end_with, initargs=(end, held))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        held.close()
        end.close()


@contextmanager
def quietly_begun() -> Iterator[None]:
    """Work is submitted in here: the processes that begin with it are deaf to Ctrl-C from their first moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(end: Connection, held: Connection) -> None:
    """In a worker: ends it when the last end of the pipe that the main process held is closed."""
    held.close()
    threading.Thread(target=_wait_for, args=(end,), daemon=True, name="end-with-the-main-process").start()


def _wait_for(end: Connection) -> None:
    try:
        end.recv_bytes()  # nothing is ever sent
    except (EOFError, OSError):
        os._exit(0)
