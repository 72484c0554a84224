"""Finished runs judged by a dask.distributed cluster: the same snapshots in the same order (extra ``dask``).

The workers must see the same files under the same paths and have trainmon installed. A run whose worker dies is given
to another one by the scheduler; one that no worker brings back is judged here, and that is said.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.workers import ClusterError, Judge, is_local
from trainmon.tails.discover import RunFiles
from trainmon.tails.text import printable

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")

CONNECT_S = 15.0
_RETRIES = 3


def judged_on(address: str, runs: Sequence[RunFiles], judge: Judge, problems: list[str]) -> Iterator[RunSnapshot]:
    """The snapshot that `judge` makes of each run, in order, made by the workers of the scheduler at `address`.

    Raises ClusterError when the scheduler cannot be reached or has no worker.
    """
    with _client(address) as client:
        futures = {
            run.name: client.submit(judge, run, pure=False, retries=_RETRIES, key=f"trainmon-{number}-{run.name}")
            for number, run in enumerate(runs)
            if is_local(run)
        }
        for run in runs:
            yield _result(futures.pop(run.name, None), run, judge, problems)


@contextlib.contextmanager
def _client(address: str) -> Iterator[Client]:
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError("--dask needs the extra: pip install 'trainmon[dask]'") from None
    _require_listening(address)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise _unusable(address, error) from None
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ClusterError(f"--dask {address}: it has no workers; start some with `dask worker {address}`")
        yield client
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=2.0)  # type: ignore[no-untyped-call]


def _require_listening(address: str) -> None:
    """Raises ClusterError when nothing answers there: a client that cannot connect prints a traceback of its own."""
    try:
        place = urlsplit(address)
        if not place.hostname or place.port is None:
            raise ValueError("not an address such as tcp://HOST:8786")
        socket.create_connection((place.hostname, place.port), timeout=CONNECT_S).close()
    except (OSError, ValueError) as error:
        raise _unusable(address, error) from None


def _unusable(address: str, error: Exception) -> ClusterError:
    words = printable(str(error), 200).rstrip(".") or type(error).__name__
    return ClusterError(f"--dask {address}: {words}; start one with `dask scheduler` and give tcp://HOST:8786")


def mapped_on(address: str, work: Callable[[RunFiles], T], runs: Iterable[RunFiles]) -> list[T]:
    """`work` of each run, in order, by the workers of the scheduler at `address`.

    Raises ClusterError, and what `work` raises.
    """
    with _client(address) as client:
        futures = [client.submit(work, run, pure=False, retries=_RETRIES) for run in runs]
        return [future.result() for future in futures]


def _result(future: Any, run: RunFiles, judge: Judge, problems: list[str]) -> RunSnapshot:
    if future is None:
        return judge(run)
    try:
        found: RunSnapshot = future.result()
    except Exception as error:  # whatever a foreign machine raised: the run is judged all the same
        words = printable(f"{type(error).__name__}: {error}", 200)
        said = f"a worker of the cluster could not judge {printable(run.name, 80)} ({words}); it was judged here"
        problems.append(said)
        return judge(run)
    future.release()
    return found
