"""What a log says: numbers at a step (`Block`), events (`Note`) and facts about the run (`Fact`).

These are the only things that leave `tails`. One `Block` holds what a stretch of a log measured; one
object a record would cost more than all the rest of the program together.
"""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.quick_dataclass import dataclass

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MarkArray = NDArray[np.uint8]


class Mark(IntEnum):
    """What stands behind one cell of a column: a NaN cell is "not logged" unless its mark says otherwise.

    NAN is in a table or record, where it may fill a gap; SAID_NAN was printed in the words of a line, which has none.
    """

    ABSENT = 0
    NUMBER = 1
    NAN = 2
    POS_INF = 3
    NEG_INF = 4
    NULL = 5
    SAID_NAN = 6

    @property
    def is_non_finite(self) -> bool:
        """Whether a value was logged that is no finite number; a null is no value."""
        return self in (Mark.NAN, Mark.SAID_NAN, Mark.POS_INF, Mark.NEG_INF)


class TimeKind(StrEnum):
    """How far a time stamp can be trusted. Naive times may only be differenced within an attempt."""

    ABSOLUTE = "absolute"
    NAIVE = "naive"
    ARRIVAL = "arrival"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of records of one source, column by column; `n` records, in file order.

    `steps`: (n,) float64, the value of `step_key`; NaN where the record carried none.
    `times`: (n,) float64, seconds since the epoch; NaN where unknown.
    `offsets`: (n,) int64, byte offset of the first byte of the record in its file.
    `lines`: (n,) int64, 1-based physical line number (a ``\\r`` frame keeps the number of its line).
    `columns`: raw key -> (n,) float64; NaN means "not logged" unless `marks` says it was logged so.
    `marks`: raw key -> (n,) uint8 of `Mark`, present only for columns in which something that is not a
    number was logged (NaN, Inf or null). ABSENT and NUMBER are filled in there as well.
    `step_key`: the log's own name of the step, "" when no key serves (then `steps` is all NaN).
    `run`: which of the runs that the file holds, as ``seed=2``; "" for the first, and where there is only one.
    `by_metric`: all values of one metric stand before those of the next, so that a step that goes back is no restart.
    """

    source: str
    steps: FloatArray
    times: FloatArray
    offsets: IntArray
    lines: IntArray
    columns: dict[str, FloatArray]
    marks: dict[str, MarkArray] = field(default_factory=dict)
    step_key: str = ""
    time_kind: TimeKind = TimeKind.NONE
    run: str = ""
    by_metric: bool = False

    def __len__(self) -> int:
        return len(self.steps)

    def mark_of(self, key: str) -> MarkArray:
        """(n,) uint8 of `Mark` for `key`, made from the values when no mark was kept."""
        marks = self.marks.get(key)
        if marks is not None:
            return marks
        return np.where(np.isnan(self.columns[key]), Mark.ABSENT, Mark.NUMBER).astype(np.uint8)


class NoteKind(StrEnum):
    """Events that a log tells of in words. The values are stable: they appear in JSON output."""

    TRACEBACK = "traceback"
    ERROR = "error"
    CUDA_OOM = "cuda_oom"
    HOST_OOM = "host_oom"
    NCCL_TIMEOUT = "nccl_timeout"
    INIT_TIMEOUT = "init_timeout"
    XID = "xid"
    SEGFAULT = "segfault"
    KEYBOARD_INTERRUPT = "keyboard_interrupt"
    SIGTERM = "sigterm"
    SIGHUP = "sighup"
    SIGKILL = "sigkill"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    TIME_LIMIT = "time_limit"
    NODE_FAIL = "node_fail"
    CHECKPOINT_SAVED = "checkpoint_saved"
    RESUMED = "resumed_from_checkpoint"
    LOSS_SCALE_OVERFLOW = "loss_scale_overflow"
    SKIPPED_STEP = "skipped_step"
    LAUNCH = "launch"
    FINISHED = "finished_ok"
    EARLY_STOP = "early_stop"
    UNREADABLE = "unreadable"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Note:
    """One event of a log. `step` is the last step seen before it, or the step that the text names.

    `text` is the log's own words (for a traceback: its last line, the exception), cut to 500 characters;
    it is hostile until shown otherwise and must pass `tails.text.printable` before it reaches a terminal.
    `teardown` marks noise of a process that was already dying: never a root cause. `run`: as `Block.run`.
    """

    source: str
    line_no: int
    offset: int
    kind: NoteKind
    text: str
    step: float | None = None
    time: float | None = None
    time_kind: TimeKind = TimeKind.NONE
    teardown: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something fixed about the run that its log or config says: ``total_steps``, ``batch_size``, ...

    Known keys: total_steps, batch_size (samples a step), seq_length (tokens), tokens_per_batch,
    parameters, active_parameters, clip_threshold, peak_lr, warmup_steps, precision, world_size, gpu,
    gpu_memory_bytes, optimizer, checkpoint_interval, num_experts, framework. Others are kept and shown.
    `run`: as `Block.run`; `RUN_IN_FILE` tells what names the run, once its file holds several.
    """

    source: str
    line_no: int
    key: str
    value: float | str
    run: str = ""


RUN_IN_FILE: Final = "run_in_file"  # the key of a `Fact`


@dataclass(slots=True)
class Parsed:
    """What one feed gave. `lines` counts physical lines, `unreadable` those that should have been records."""

    blocks: list[Block] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    lines: int = 0
    records: int = 0
    unreadable: int = 0

    def add(self, other: Parsed) -> None:
        """Appends what `other` holds."""
        self.blocks += other.blocks
        self.notes += other.notes
        self.facts += other.facts
        self.lines += other.lines
        self.records += other.records
        self.unreadable += other.unreadable
