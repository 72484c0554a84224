"""How processes, shells, launchers and schedulers other than Slurm say that a job ended, and exceptions by themselves.

Rules as in `note_rules`.
"""

from __future__ import annotations

import re
from typing import Final

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import NoteKind
from trainmon.tails.rule import Rule, rule

_K = NoteKind

_NAMES: Final = (
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}_{0,2}(?:[A-Z]\w{0,80}(?:Error|Exception)|StopIteration|TimeoutExpired)(?![\w.])"
)
# A number alone is the value of a metric: MeanSquaredError: 0.25
_NO_METRIC: Final = r"(?![-+]?(?:\d+\.\d*|\.\d+|nan|inf)(?:e[-+]?\d+)?\s*(?:$|[,|%]))"
# An exception as Python prints it, without the traceback before it: stderr was filtered, or a logger named it.
# Few lines hold a colon behind "error"; of names alone, those that are raised without a message.
EXCEPTION_TOKENS: Final = (
    *(
        "error: ",
        "exception: ",
        "stopiteration",
        "timeoutexpired: ",
        "assertionerror",
        "notimplementederror",
        "keyerror",
    ),
    *("runtimeerror", "timeouterror", "recursionerror", "zerodivisionerror", "cancellederror", "brokenpipeerror"),
)
EXCEPTION: Final = lazy(rf"(?P<name>{_NAMES})(?:: {_NO_METRIC}|:?\s*$)")
# Told by somebody who goes on.
_WENT_ON: Final = (
    r"\b(?:skipp(?:ed|ing)|retrying|will retry|ignor(?:ed|ing)|continuing|falling back|fall back|halving"
    r"|recover(?:ed|ing)? from|trying (?:again|\d{1,9}|with|a smaller))\b"
)

WENT_ON: Final = lazy(_WENT_ON, re.IGNORECASE)

# Said before a traceback that is shown for information only.
CAUGHT_TOKENS: Final = ("retrying", "will retry", "trying again", "falling back")
CAUGHT: Final = lazy(rf"\b(?:{'|'.join(CAUGHT_TOKENS)})\b", re.IGNORECASE)

DEATHS: Final[tuple[Rule, ...]] = (
    rule(
        _K.SEGFAULT,
        "segfault at|general protection|trap invalid opcode|sigill|sigfpe|illegal instruction|floating point exception",
        r"\bsegfault at [0-9a-f]|\bgeneral protection fault\b|\btrap invalid opcode\b|\bSignal [48] \(SIG(?:ILL|FPE)\)"
        r"|\bSIG(?:ILL|FPE) received\b|<Signals\.SIG(?:ILL|FPE|ABRT)|exited on signal [48]\b"
        r"|\b(?:Illegal instruction|Floating point exception) {1,20}\(core dumped\)"
        r"|: task \S{1,40}: (?:Illegal instruction|Floating point exception)",
    ),
    rule(
        _K.SIGKILL,
        "exited on signal 9|signals.sigkill|signal: killed",
        r"exited on signal 9\b|<Signals\.SIGKILL\b|\bkilled by signal: Killed",
    ),
    rule(
        _K.SIGTERM,
        "sigterm received|signals.sigterm|exited on signal 15|signal terminated",
        r"\bSIGTERM received\b(?! handler)|<Signals\.SIGTERM\b|exited on signal 15\b|\bCaught signal Terminated\b",
    ),
    # PBS, LSF
    rule(_K.HOST_OOM, "job killed: |term_swap", r"job killed: (?:p?v?mem|resources_used\.v?mem)\b|\bTERM_SWAP\b"),
    rule(_K.HOST_OOM, "out of memory", r"^srun: error: .{1,200}: Out Of Memory\b"),
    rule(
        _K.TIME_LIMIT,
        "job killed: |term_cpulimit|term_deadline|term_window|timed-out|job has timed out|time limit|wallclock limit"
        "|walltime|wall time",
        r"job killed: p?cput\b|\bTERM_(?:CPULIMIT|DEADLINE|WINDOW)\b|\bthis job is timed-out\b|\bJob has timed out\b"
        r"|\b(?:time|wall ?time|wallclock) limit\b.{0,60}\b(?:sav(?:e|ing)|exit(?:ing)?|stop(?:ping)?)\b",
        unless=r"\b(?:will|if|when|before|handler)\b",
    ),
    rule(
        _K.CANCELLED,
        "job killed: |term_owner|term_force|term_admin",
        r"job killed: (?:requested|by)\b|\bTERM_(?:OWNER|FORCE_OWNER|ADMIN|FORCE_ADMIN)\b",
    ),
    rule(
        _K.PREEMPTED,
        "preempted|term_preempt|evicted|low on resource",
        r"\bTERM_PREEMPT\b|^Preempted (?:by|in order to)\b|\bReason:\s{1,20}(?:Evicted|Preempt\w{0,10})\b"
        r"|\bpods?\b.{0,80}\bevicted\b|low on resource: (?!memory)|\bthis job is preempted\b",
    ),
    # What launchers say of their workers.
    rule(
        _K.ERROR,
        "mpi_abort|one or more processes exited|bad termination|1 process returned|error_file: /|with exit code"
        "|exit status |make: ***|make[|exited with code",
        r"^MPI_ABORT was invoked\b|one or more processes exited with non-zero|\bBAD TERMINATION OF ONE\b"
        r"|^exit status [1-9]\d{0,2}\s*$|^make(?:\[\d+\])?: \*\*\* \[.{1,200}\] Error [1-9]"
        r"|but 1 process returned\s*$|\berror_file: /\S|\b(?:finished|terminated|completed) with exit code [1-9]",
        teardown=True,
    ),
    rule(
        _K.ERROR,
        "command not found|can't open file|.py: error: ",
        r"\b(?:torchrun|deepspeed|accelerate|srun|mpirun|mpiexec|python[\d.]*): command not found"
        r"|^\S{1,200}: can't open file '|^\S{1,200}\.py: error: ",
    ),
    # glog: whatever was fatal, a stack follows. The tokens that no expression has let lines through whose level is F.
    rule(_K.ERROR, "check failed: ", r"\bCheck failed: "),
    rule(
        _K.ERROR,
        "check failure stack trace|fatal|f external/|f tensorflow/|f xla/|f third_party/",
        r"\*\*\* Check failure stack trace: \*\*\*",
        teardown=True,
    ),
    rule(
        _K.ERROR,
        "training failed|training crashed|training aborted|run failed|job failed|training has failed",
        r"^(?:\W{0,3}\w{1,20}\W{1,3})?(?:training|run|job) (?:has )?(?:failed|crashed|aborted)\b"
        r"(?=[:.!]| with| due| after|\s*$)",
        unless=_WENT_ON,
    ),
)
