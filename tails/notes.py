"""What a log says in words: failures, signals, the scheduler's messages, checkpoints, overflow, start and end.

A table of rules: bytes that a line must hold (lower case, for the pre-screen), an expression, the kind. Noise of
processes that are already being taken down is told apart (`teardown`), so that the first real cause stands out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmon.tails.prefix import Prefix
from trainmon.tails.record import Note, NoteKind
from trainmon.tails.traceback import Trace, Tracebacks

_MAX_TEXT = 500
_K = NoteKind


@dataclass(frozen=True, slots=True)
class Rule:
    """`tokens`: a line without any of them is not tried."""

    kind: NoteKind
    tokens: tuple[bytes, ...]
    pattern: re.Pattern[str]
    teardown: bool = False


def _rule(kind: NoteKind, tokens: str, pattern: str, *, teardown: bool = False) -> Rule:
    return Rule(kind, tuple(token.encode() for token in tokens.split("|")), re.compile(pattern, re.I), teardown)


# Tried in order; every rule that fits gives a note, but of one kind only one a line.
RULES: tuple[Rule, ...] = (
    _rule(_K.TIME_LIMIT, "due to time limit", r"DUE TO TIME LIMIT"),
    _rule(_K.PREEMPTED, "preempt", r"DUE TO PREEMPTION|\bjob (?:was )?preempted|CANCELLED.*PREEMPT|received preemption|preemption (?:notice|signal)"),
    _rule(_K.NODE_FAIL, "node_fail|node fail", r"DUE TO NODE[_ ]FAIL|NODE_FAIL|node failure"),
    _rule(_K.CANCELLED, "cancelled at|cancelled by|was cancelled", r"\bCANCELLED AT\b|\bjob\b.*\bcancelled by\b|\bjob (?:\S+ )?was cancelled"),
    _rule(_K.HOST_OOM, "oom-kill|oom_kill|out-of-memory|out of memory: kill|oom killer|oomkilled", r"oom[-_ ]?kill|OOMKilled|Out of memory: Kill|cgroup out-of-memory"),
    _rule(
        _K.CUDA_OOM,
        "out of memory|outofmemory|resource_exhausted",
        r"OutOfMemoryError|(?:CUDA|HIP|NPU|XPU|MPS backend)(?: error)?:? out of memory|RESOURCE_EXHAUSTED: .*(?:out of memory|allocat)",
    ),
    _rule(
        _K.NCCL_TIMEOUT,
        "watchdog caught|collective operation timeout|nccl timeout|collective timeout|rccl",
        r"Watchdog caught collective operation timeout|collective operation timeout:|\b[NR]CCL (?:watchdog )?time-?out\b",
    ),
    _rule(
        _K.NCCL_TIMEOUT,
        "watchdog thread terminated|heartbeat monitor|nccl communicator was aborted",
        r"(?:watchdog thread terminated|NCCL communicator was aborted|heartbeat monitor timed out)",
        teardown=True,
    ),
    _rule(
        _K.INIT_TIMEOUT,
        "timed out initializing process group|timed out after|rendezvoustimeout|waiting for clients",
        r"Timed out initializing process group|(?:rendezvous|store|clients).*timed out after|RendezvousTimeoutError|timed out.*waiting for clients",
    ),
    _rule(_K.XID, "xid", r"\bXid\b.*?\b\d{1,3}\b|GPU has fallen off the bus"),
    _rule(_K.SEGFAULT, "segmentation fault|sigsegv|bus error|sigbus|sigabrt|core dumped", r"Segmentation fault|\bSIGSEGV\b|\bBus error\b|\bSIGBUS\b|Signal 6 \(SIGABRT\)|core dumped"),
    _rule(_K.KEYBOARD_INTERRUPT, "keyboardinterrupt|keyboard interrupt", r"^KeyboardInterrupt\b|killed by keyboard interrupt|interrupted by (?:the )?user"),
    _rule(_K.SIGTERM, "sigterm|signal 15|death signal|signal: 15", r"received (?:signal )?SIGTERM|Received 15 death signal|got signal: 15\b|signal 15 received|terminated by signal 15"),
    _rule(_K.SIGTERM, "closing signal sigterm|with sigterm", r"closing signal SIGTERM|with SIGTERM", teardown=True),
    _rule(_K.SIGHUP, "sighup|signal: 1|death signal", r"received (?:signal )?SIGHUP|Received 1 death signal|got signal: 1\b(?!\d)"),
    _rule(_K.SIGHUP, "closing signal sighup", r"closing signal SIGHUP", teardown=True),
    _rule(_K.SIGKILL, "sigkill|signal 9|killed", r"Signal 9 \(SIGKILL\)|received SIGKILL|^(?:\S+: line \d+:\s+\d+ )?Killed\b|task \d+.*: Killed|got signal: 9\b"),
    _rule(_K.SIGKILL, "exitcode: -9|via sigkill", r"exitcode\s*: -9|via SIGKILL", teardown=True),
    _rule(_K.ERROR, "address already in use|eaddrinuse", r"Address already in use|EADDRINUSE"),
    _rule(_K.ERROR, "filenotfounderror|no such file", r"^FileNotFoundError\b"),
    _rule(_K.ERROR, "cuda error|cublas_status|cudnn_status|device-side assert|ecc error", r"CUDA error: (?!out of memory)|CUBLAS_STATUS_(?!SUCCESS)|CUDNN_STATUS_(?!SUCCESS)|device-side assert triggered|uncorrectable ECC"),
    _rule(_K.ERROR, "slurmstepd: error|srun: error", r"^(?:slurmstepd|srun): error: (?!.*(?:CANCELLED|TIME LIMIT|oom|Killed|PREEMPT))"),
    _rule(
        _K.ERROR,
        "childfailederror|exits with return code|exited with code|failed with exit status|return code =|destroy_process_group",
        r"ChildFailedError|exits with return code = -?[1-9]|exited with (?:exit )?code -?[1-9]|failed with exit status -?[1-9]|destroy_process_group\(\) was not called",
        teardown=True,
    ),
    _rule(
        _K.LOSS_SCALE_OVERFLOW,
        "overflow",
        r"OVERFLOW!|gradient overflow|overflow detected|found (?:inf|nan)(?:/nan)? .*(?:gradient|skip)",
    ),
    _rule(
        _K.SKIPPED_STEP,
        "skipping step|skipping the step|skipping update|skipping batch|step skipped|skipping iteration",
        r"skipping (?:the |this )?(?:optimizer )?(?:step|update|batch|iteration)|step skipped",
    ),
    _rule(
        _K.CHECKPOINT_SAVED,
        "saved|saving|checkpoint written",
        r"\bsav(?:ed|ing)\b(?!\.\.\.\s*\w)(?:(?! loss| log).){0,80}?(?:checkpoint|ckpt|model|state|weights|optim)"
        r"|(?:checkpoint|ckpt|model|state)\S*(?: \S+){0,6} (?:saved|saving)|\bsaving model\b|^saving\.\.\.|^Saving to: |ckpt\S*\.pth saving",
    ),
    _rule(
        _K.RESUMED,
        "resum|loaded checkpoint|successfully loaded|starting from iteration|loading checkpoint from|restoring",
        r"\bresum(?:ed|ing)\b.{0,40}(?:from|at|checkpoint|training)|(?:successfully )?loaded checkpoint|successfully loaded .*(?:checkpoint|global_step|states?\.pt)"
        r"|loading checkpoint and starting from iteration [1-9]|restor(?:ed|ing) (?:from )?(?:the )?checkpoint",
    ),
    _rule(_K.LAUNCH, "torchrun|running:|torch.distributed.launch|accelerate launch|deepspeed --|setting omp_num_threads", r"^(?:Running: |\+ )?(?:\S*/)?(?:torchrun|accelerate launch|deepspeed)\s+-|^Running: |^cmd = (?:deepspeed|torchrun|python)|Setting OMP_NUM_THREADS environment variable"),
    _rule(
        _K.EARLY_STOP,
        "stopping early|stopping_early|early stop",
        r"\bstopping[ _]early\b|\bearly[ -]stopp(?:ed|ing)\b(?!\s*[\"':=_.])(?! (?:callback|patience|is|criteria))",
    ),
    _rule(
        _K.FINISHED,
        "training completed|training complete|training finished|finished training|training done|done training|exits successfully|"
        "succeeded|training has finished|exit_code=0|max_steps|completed successfully",
        r"\btraining (?:is |has )?(?:completed?|finished|done)\b|\b(?:finished|done|completed) (?:the )?training\b|exits successfully"
        r"|\bjob\b.*\bsucceeded\b|\bEXIT_CODE=0\b|`?Trainer\.fit`? stopped: `?max_(?:steps|epochs)|\bcompleted successfully\b",
    ),
)
TOKENS: tuple[bytes, ...] = tuple(
    dict.fromkeys([b"traceback (most", b"exception ignored", *(token for rule in RULES for token in rule.tokens)])
)
_TABLE_ROW = re.compile(r"\s*[\"']?[\w.-]+[\"']?\s*(?:\.{4,}|[:=]\s*(?:true|false|none|null|\d+),?\s*$)", re.I)
_SOURCE_LINE = re.compile(r"\s*(?:raise |return |print\w*\(|log\w*\.|warnings\.|def |if |assert |f?['\"]|File \"|#)")
_STEP = re.compile(r"\b(?:global_?step|step|iteration|iter|checkpoint|ckpt|epoch_step)[-_ =:#]*(\d+)", re.I)
_NUMBERED = re.compile(r"[/_-]0*(\d{3,})(?:[./]|\b)")
_NOT_CAUSES = re.compile(r"ChildFailedError|CalledProcessError|PythonFinalizationError|SystemExit|ProcessExitedException|BrokenPipeError")


class NoteScanner:
    """Finds the notes of one file. `step` is given by the caller: the newest step seen."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._traces = Tracebacks()

    @property
    def is_open(self) -> bool:
        """Whether every next line must be seen: a traceback is open."""
        return self._traces.is_open

    def scan(self, text: str, prefix: Prefix, line_no: int, offset: int, step: float | None) -> list[Note]:
        """The notes of one line; `text` is what follows its prefix."""
        notes: list[Note] = []
        is_warning = prefix.is_warning
        if not is_warning:
            for trace in self._traces.feed(text, prefix.rank, line_no, offset):
                notes += self._of_trace(trace, prefix, step)
        if (len(text) > 20000 or _TABLE_ROW.match(text) or _SOURCE_LINE.match(text)) and "slurmstepd" not in text:
            return notes
        low = text.lower().encode("utf-8", "replace")
        seen: set[NoteKind] = set()
        for rule in RULES:
            if rule.kind in seen or not any(token in low for token in rule.tokens):
                continue
            match = rule.pattern.search(text)
            if match is None:
                continue
            seen.add(rule.kind)
            notes.append(self._note(rule, text, match, prefix, line_no, offset, step))
        return notes

    def _note(
        self, rule: Rule, text: str, match: re.Match[str], prefix: Prefix, line_no: int, offset: int, step: float | None
    ) -> Note:
        start = max(0, match.start() - 200) if len(text) > _MAX_TEXT else 0
        if (glued := text.find("slurmstepd:")) >= 0:
            start = glued
        words = text[start : start + _MAX_TEXT].strip()
        if rule.kind in (_K.CHECKPOINT_SAVED, _K.RESUMED):
            step = _named_step(text) if _named_step(text) is not None else step
        is_teardown = rule.teardown or (prefix.is_warning and rule.kind in (_K.ERROR, _K.CUDA_OOM))
        return Note(
            self.source, line_no, offset, rule.kind, words, step, prefix.time, prefix.time_kind, is_teardown
        )

    def _of_trace(self, trace: Trace, prefix: Prefix, step: float | None) -> list[Note]:
        cause = trace.cause
        if not cause:
            return []
        is_teardown = trace.is_ignored or bool(_NOT_CAUSES.search(cause))
        kind = _K.TRACEBACK
        return [
            Note(self.source, trace.line_no, trace.offset, kind, cause[:_MAX_TEXT], step, prefix.time, prefix.time_kind, is_teardown)
        ]

    def flush(self, step: float | None) -> list[Note]:
        """The notes of what is still open."""
        notes: list[Note] = []
        for trace in self._traces.flush():
            notes += self._of_trace(trace, Prefix(), step)
        return notes


def _named_step(text: str) -> float | None:
    match = _STEP.search(text) or _NUMBERED.search(text)
    return float(match[1]) if match is not None and len(match[1]) < 12 else None
