"""Where the screens get what they draw: the one contract between the app and the session behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from trainmon.monitor.log_search import LogSearch
    from trainmon.monitor.snapshot import FleetSnapshot


class SnapshotSource(Protocol):
    """Publishes immutable snapshots and takes requests. Every method returns at once, none may block the screen."""

    def latest(self) -> FleetSnapshot:
        """The newest snapshot; the same object while nothing changed. Called by a timer, at most 10 times a second."""
        ...

    def acknowledge(self, run: str, episode_id: str) -> None:
        """Marks an episode of the run named `run` as seen by a person."""
        ...

    def snooze(self, run: str, episode_id: str, seconds: float) -> None:
        """Silences an episode for `seconds`."""
        ...

    def request_log(self, run: str, path: str, line_no: int) -> None:
        """Asks for the raw lines around `line_no` (1-based); they come as `RunSnapshot.log_context`."""
        ...

    def search_log(self, path: str, line_no: int, words: str | None, by: int) -> LogSearch:
        """Looks for `words` (None: an error) in a whole log file, after (by = 1) or before (-1) the line; goes on by
        itself."""
        ...

    def stop(self) -> None:
        """The screens are closed; nothing will be asked any more."""
        ...


@runtime_checkable
class LiveSource(Protocol):
    """A source that tells when there is something new, and minds which runs are looked at."""

    def call_when_new(self, call: Callable[[], None]) -> None:
        """Has `call` called, from a thread of the source's, whenever `latest` gives another snapshot."""
        ...

    def written_s(self, path: str) -> float | None:
        """When the file of a run was last seen to be written to, on the monotonic clock: before it is read, where many
        are read together every few seconds. None where that is not known."""
        ...

    def attend(self, runs: frozenset[str]) -> None:
        """These runs are looked at closely: what is new of them is wanted at once."""
        ...


@runtime_checkable
class ReadingSource(Protocol):
    """A source that can read a log again."""

    def look_closely(self, run: str, first: float, last: float) -> None:
        """The steps from `first` to `last` are looked at: what was thinned there comes raw in a later snapshot."""
        ...
