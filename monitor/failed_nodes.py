"""On which nodes a job broke: as its scheduler says, else as the last words of its logs name them."""

from __future__ import annotations

import os
import re
from typing import Final

from trainmon.monitor.slurm.hostlist import expanded
from trainmon.monitor.snapshot import RunSnapshot, State
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.opening import NotRegular, open_regular

_BROKEN: Final = (State.CRASHED, State.NODE_FAIL, State.HUNG, State.OOM)
_MOST: Final = 64
_END_BYTES: Final = 1 << 16
_NAME: Final = r"([A-Za-z][\w.-]{0,100})"
_ROOT_CAUSE: Final = "Root Cause (first observed failure)"  # of torchrun's report; the failures above it followed
_SAYS: Final = tuple(
    lazy(pattern, re.MULTILINE)
    for pattern in (
        rf"^\W*host\s{{0,20}}: {_NAME}\s*$",  # torchrun
        rf"^srun: error: {_NAME}: tasks? \d",  # Slurm, without its accounting
        rf"^{_NAME}:\d+:\d+ \[\d+\] .{{0,60}}NCCL WARN",
    )
)


def failed_nodes(run: RunSnapshot) -> list[str]:
    """The nodes of a run that broke; none of one that did not, or whose logs are elsewhere and name none."""
    if run.state not in _BROKEN:
        return []
    if run.job is not None and run.job.nodes:
        return [node for node in expanded(run.job.nodes) if node][:_MOST]
    found: dict[str, None] = {}
    for file in run.files:
        found.update(dict.fromkeys(named_in(_end_of(file.path))))
    return list(found)[:_MOST]


def named_in(words: str) -> list[str]:
    """The nodes that the end of a log blames.

    >>> named_in("[0]:\\n  host      : node-03\\n  rank      : 5 (local_rank: 5)\\n")
    ['node-03']
    >>> named_in("srun: error: gpu17: task 3: Segmentation fault\\nstep 3 host : none of these lines\\n")
    ['gpu17']
    """
    _, mark, root = words.rpartition(_ROOT_CAUSE)
    found = dict.fromkeys(name for says in _SAYS for name in says.findall(root if mark else words))
    return [name for name in found if name.lower() != "localhost"]


def _end_of(path: str) -> str:
    """The last words of a log here; "" where it cannot be read."""
    try:
        descriptor, status = open_regular(path)
    except (OSError, NotRegular, ValueError):
        return ""
    try:
        return os.pread(descriptor, _END_BYTES, max(status.st_size - _END_BYTES, 0)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
