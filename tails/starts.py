"""Which start of a run wrote which of its files, where the names of directories tell."""

from __future__ import annotations

from collections.abc import Iterable

from trainmon.tails.lazy_pattern import lazy

# torchrun --log-dir: RUN/attempt_N/RANK/stdout.log; W&B: wandb/offline-run-DATE_TIME-ID, a new one for each resumption
_ATTEMPT = lazy(r"(?:^|/)(?:attempt_(?P<number>\d{1,6})|(?:offline-)?run-(?P<date>\d{8}_\d{6})-\w+)(?=/)")
WANDB_START = lazy(r"(?:offline-)?run-\d{8}_\d{6}-(?P<id>\w+)")


def starts_of(paths: Iterable[str]) -> dict[str, int]:
    """The number of the start that wrote each file of a run below a directory of its own; 0 is the first there is.

    >>> starts_of(["a/attempt_1/0/stdout.log", "a/attempt_3/0/stdout.log", "a/metrics.jsonl"])
    {'a/attempt_1/0/stdout.log': 0, 'a/attempt_3/0/stdout.log': 1}
    """
    told = {
        path: int((found[-1][0] or found[-1][1]).replace("_", ""))
        for path in paths
        if ("attempt_" in path or "run-" in path) and (found := _ATTEMPT.findall(path))
    }
    order = {number: place for place, number in enumerate(sorted(set(told.values())))}
    return {path: order[number] for path, number in told.items()}
