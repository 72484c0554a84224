"""The words by which a log tells of an event: bytes that must be there, an expression, the kind of note.

To teach trainmon another phrase is one more line here. Noise of processes that are already being taken down is told
apart (`teardown`), so that the first real cause stands out.
"""

from __future__ import annotations

from trainmon.tails.death_rules import CAUGHT_TOKENS, DEATHS, EXCEPTION_TOKENS, WENT_ON
from trainmon.tails.hardware_rules import HARDWARE
from trainmon.tails.last_words import TOKENS as LAST_WORDS
from trainmon.tails.record import NoteKind
from trainmon.tails.rule import Rule
from trainmon.tails.rule import rule as _rule
from trainmon.tails.rule import up_to as _up_to

_K = NoteKind

_STORES = "rendezvous|store|clients"
_SAVE = r"(?<![-/_\w.])sav(?:ed|ing)(?![-/_\w])"
_NO_SAVE = (
    r"(?!.*(?:\bload(?:ed|ing)\b|\bwill\b|not found|\bskip|\bwrap|going to be|is bigger|\b(?:if|before|when) sav))"
)

# Tried in order; every rule that fits gives a note, but a line gives only one of a kind.
RULES: tuple[Rule, ...] = (
    _rule(
        _K.TIME_LIMIT,  # Slurm; LSF; PBS; Megatron's --exit-duration-in-mins
        "due to time limit|term_runlimit|job killed: walltime|exiting program after",
        r"DUE TO TIME LIMIT|\bTERM_RUNLIMIT\b|job killed: walltime|^\[exiting program after [\d.]{1,20} minutes\]",
    ),
    _rule(
        _K.PREEMPTED,
        "preempt|interruption",
        r"DUE TO (?:JOB )?PREEMPTION|\bjob (?:\S+ )?(?:was )?preempted|\b(?:is|has|been|being|was|got) preempted\b"
        r"|\b(?:received|detected)\b.{0,30}\bpreemption\b(?! (?:handler|check))|preemption (?:notice|signal)"
        r"|\bspot (?:instance )?interruption (?:notice|warning)",
    ),
    _rule(_K.NODE_FAIL, "node_fail|node fail", r"DUE TO NODE[_ ]FAIL|NODE_FAIL|node failure"),
    _rule(
        _K.CANCELLED,
        "cancelled at|cancelled by|was cancelled",
        r"\bCANCELLED AT\b|\bjob\b.*\bcancelled by\b|\bjob (?:\S+ )?was cancelled",
    ),
    _rule(
        _K.HOST_OOM,
        "oom-kill|oom_kill|oom kill|out-of-memory|out of memory: kill|oomkilled|low on resource|bad_alloc"
        "|term_memlimit|exceeded memory limit|exceeded job memory|exceeded step memory",
        r"(?<![-\w])oom[-_ ]?kill(?!\w{0,20}[-=]\w|_\w)|OOMKilled|Out of memory: Kill|cgroup out-of-memory"
        r"|low on resource: memory"
        r"|std::bad_alloc|\bTERM_MEMLIMIT\b"
        r"|exceeded memory limit.{0,80}being killed|Exceeded (?:job|step) memory limit(?! at some point)",
    ),
    _rule(
        _K.HOST_OOM,  # of Python, NumPy and PyTorch on the CPU
        "memoryerror|unable to allocate|defaultcpuallocator|errno 12]",
        r"^(?:\w{1,80}\.){0,8}_?(?:Array)?MemoryError\b(?!.*\b(?:CUDA|GPU)\b)|\bMemoryError: Unable to allocate\b"
        r"|^Unable to allocate [\d.]{1,20} [KMGT]iB for an array\b"
        r"|\bDefaultCPUAllocator: (?:can't allocate|not enough) memory|\bOSError: \[Errno 12\] Cannot allocate memory",
    ),
    _rule(
        _K.CUDA_OOM,
        "out of memory|outofmemory|resource_exhausted|triton error|error_out_of_memory",
        r"^(?:\w{1,40}\.){0,6}OutOfMemoryError(?:: (?=\S+ )|:?\s*$)|(?<=\S )(?:\w{1,40}\.){0,6}OutOfMemoryError: \S"
        r"|(?:CUDA|HIP|NPU|XPU|MPS backend)(?: error| failure| exception)?:? out of memory"
        rf"|RESOURCE_EXHAUSTED: {_up_to('resource_exhausted', 300)}(?:out of memory|allocat)"
        r"|Out of memory error on [A-Z]PU|\bTriton Error \[\w{1,8}\]: out of memory"
        r"|\b(?:CUDA|HIP|hip|cuda)_?ERROR_OUT_?OF_?MEMORY\b",
        unless=rf"{WENT_ON.pattern}"
        r"|\b(?:if|avoid\w{0,4}|prevent\w{0,4}|in case of|to (?:reduce|fix|handle)|when)\b.{0,80}\bout of memory",
    ),
    _rule(
        _K.NCCL_TIMEOUT,
        "watchdog thread terminated|heartbeat monitor|communicator was aborted",
        r"watchdog thread terminated|[NRH]CCL communicator was aborted|heartbeat monitor timed out",
        teardown=True,
    ),
    _rule(
        _K.NCCL_TIMEOUT,
        "watchdog caught|collective operation time|ccl time|ccl watchdog time|collective time|have failed or timed out",
        r"\bSome [NRH]CCL operations have failed or timed out|Watchdog caught collective operation time-?out"
        r"|collective (?:operation )?time-?out:"
        r"|\b[NRH]CCL (?:watchdog )?time-?out\b(?! ?(?:is |was |:|=)\s*(?:set|\d))",
    ),
    _rule(
        _K.INIT_TIMEOUT,
        "timed out initializing process group|timed out after|rendezvoustimeout|waiting for clients",
        rf"Timed out initializing process group|(?:{_STORES}){_up_to(_STORES, 300)}timed out after"
        rf"|RendezvousTimeoutError|timed out{_up_to('timed out', 300)}waiting for clients",
    ),
    _rule(_K.XID, "xid|fallen off the bus", rf"\bXid\b{_up_to('xid', 120)}\b\d{{1,3}}\b|GPU has fallen off the bus"),
    _rule(
        _K.SEGFAULT,
        "segmentation fault|sigsegv|bus error|sigbus|sigabrt|core dumped|fatal python error|aborted"
        "|illegal instruction|floating point exception",
        r"Segmentation fault|\bSIGSEGV\b|\bBus error\b|\bSIGBUS\b|Signal 6 \(SIGABRT\)|core dumped"
        r"|^Fatal Python error: |\bSIGABRT received\b|^(?:\S+: line \d+:\s+\d+ )?Aborted\b(?=\s*$|\s{3})"
        r"|^Illegal instruction|^Floating point exception",
    ),
    _rule(
        _K.KEYBOARD_INTERRUPT,
        "keyboardinterrupt|keyboard interrupt|interrupted by",
        r"^KeyboardInterrupt\b|killed by keyboard interrupt|interrupted by (?:the )?user",
    ),
    _rule(_K.SIGTERM, "closing signal sigterm|with sigterm", r"closing signal SIGTERM|with SIGTERM", teardown=True),
    _rule(
        _K.SIGTERM,
        "sigterm|signal 15|15 death signal|signal: 15|terminated",
        r"(?:received|caught|got|after receiving) (?:signal )?SIGTERM|Received 15 death signal|got signal: "
        r"15\b|(?:received )?signal 15\b|^(?:\S+: line \d+:\s+\d+ )?Terminated(?=\s*$|\s{3})",
    ),
    _rule(_K.SIGHUP, "closing signal sighup", r"closing signal SIGHUP", teardown=True),
    _rule(
        _K.SIGHUP,
        "sighup|signal: 1|1 death signal",
        r"(?:received|caught|got) (?:signal )?SIGHUP|Received 1 death signal|got signal: 1\b(?!\d)",
    ),
    _rule(_K.SIGKILL, "exitcode: -9|exitcode  : -9|via sigkill", r"exitcode\s*: -9|via SIGKILL", teardown=True),
    _rule(
        _K.SIGKILL,
        "sigkill|signal 9|killed|signal: 9",
        r"Signal 9 \(SIGKILL\)|received SIGKILL|^(?:\S+: line \d+:\s+\d+ )?Killed\b"
        r"|tasks? \d[\d,-]*.*: Killed|got signal: 9\b",
    ),
    _rule(
        _K.ERROR,
        "nccl error|ncclunhandled|ncclsystemerror|ncclinternalerror",
        r"\b[NR]CCL error\b|nccl(?:UnhandledCuda|UnhandledSystem|System|Internal)Error",
    ),
    _rule(_K.ERROR, "ncclremoteerror|remote process exited", r"ncclRemoteError|remote process exited", teardown=True),
    _rule(
        _K.ERROR, "uncaught ex|unhandled ex", r"\b(?:uncaught|unhandled) exception\b(?! (?:handler|hook|filter|policy))"
    ),
    _rule(_K.ERROR, "panicked at|panic: ", r"\bthread '[^']{1,80}' panicked at\b|^panic: \S"),
    _rule(_K.ERROR, 'errormessage "', r'^ErrorMessage "\S'),  # SageMaker's toolkit
    _rule(_K.ERROR, "what():", r"^\s{0,8}what\(\): {1,4}\S"),  # of a C++ exception that nobody caught
    _rule(
        _K.ERROR,  # glibc's last words, and assert's
        "double free|(): |corrupted size|smashing detected|assertion `|assertion '",
        r"^(?:double free or corruption|(?:malloc|free|realloc|munmap_chunk)\(\): |corrupted (?:size|double-linked))"
        r"|stack smashing detected|\bAssertion [`'].{1,400}['`] failed",
    ),
    _rule(
        _K.ERROR,
        "no space left on device|disk quota exceeded|read-only file system|stale file handle",
        r"^(?!.*(?:warn|serial mode)).*\b(?:No space left on device|Disk quota exceeded|Read-only file system"
        r"|Stale file handle)",
    ),
    _rule(
        _K.ERROR,
        "loss is|loss became|loss was|non-finite loss|nan loss|loss nan",
        r"(?:\bloss (?:is|became|was) (?:nan|[+-]?inf\w*|not finite|non-?finite)\b|\b(?:non-?finite|nan|inf) loss\b)"
        r".{0,80}\b(?:stop|abort|exit|terminat|halt|quit|kill)",
    ),
    _rule(_K.ERROR, "address already in use|eaddrinuse", r"Address already in use|EADDRINUSE"),
    _rule(
        _K.ERROR,
        "cuda error|cudnn error|cudnn_frontend] error|cublas_status|cudnn_status|device-side assert|ecc error",
        r"CUDA error: (?!out of memory)|\[(?:CUDA|CUDNN|CUBLAS) ERROR\]|\[cudnn_frontend\] Error"
        r"|CUBLAS_STATUS_(?!SUCCESS)|CUDNN_STATUS_(?!SUCCESS)"
        r"|device-side assert triggered|uncorrectable ECC",
    ),
    _rule(
        _K.ERROR,  # Ascend's driver: EH9999: Inner Error!, and the reason behind it
        "inner error!|[func:|ei00|ej00|el00|ek00|ez99|eh99|ee99",
        r"^(?:\[[^\]]{1,40}\] ?)?E[A-Z0-9]\d{4}: (?:Inner Error|[\d-]{8,}.{0,40}failed)|reason=\[[^\]]{1,80}\]\[FUNC:",
    ),
    _rule(
        _K.ERROR,
        "slurmstepd|srun: error",
        r"^(?:slurmstepd(?:-[\w.-]{1,80})?|srun): error: "
        r"(?!.*(?:NVML|CANCELLED|TIME LIMIT|oom|Killed|PREEMPT|(?:step|job) memory limit|being killed"
        r"|Exited with exit code|: Terminated\s*$|Out Of Memory))",
    ),
    _rule(
        _K.ERROR,
        "srun: error",
        r"^srun: error: .{1,200}: (?:Exited with exit code [1-9]|Terminated\s*$)",
        teardown=True,
    ),
    *HARDWARE,
    *DEATHS,
    _rule(
        _K.ERROR,
        "childfailederror|(exitcode: |exits with return code|exited with |failed with exit status"
        "|destroy_process_group|error executing job with",
        r"ChildFailedError|^Error executing job with overrides|\(exitcode: -?[1-9]|exits with return code = -?[1-9]"
        r"|exited with (?:exit )?code -?[1-9]|failed with exit status -?[1-9]|destroy_process_group\(\) was not called",
        teardown=True,
    ),
    _rule(
        _K.LOSS_SCALE_OVERFLOW,
        "overflow",
        r"OVERFLOW!|gradient overflow|overflow detected|found (?:inf|nan)(?:/nan)? .*(?:gradient|skip)",
    ),
    _rule(
        _K.SKIPPED_STEP,
        "skipping|skipped",
        r"skipping (?:the |this )?(?:optimizer )?(?:step|update|batch|iteration)\b|\b(?:step|update|ba"
        r"tch) (?:was )?skipped\b(?!\s*[:=])",
    ),
    _rule(
        _K.CHECKPOINT_SAVED,
        "saved|saving",
        rf"^{_NO_SAVE}(?:.*?{_SAVE}{_up_to(_SAVE, 80)}(?:checkpoint|ckpt|model|state|weights|optim)"
        rf"|.*?(?:checkpoint|ckpt|model|state)\S{{0,300}}+(?: \S{{1,300}}+){{0,6}}? {_SAVE}|Saving\.\.\.|Saving to: "
        rf"|(?:Configuration|Model weights) saved in )",
    ),
    _rule(
        _K.RESUMED,
        "resum|loaded checkpoint|successfully loaded|starting from iteration|restor|continuing training from",
        r"\bresum(?:ed|ing)\b.{0,40}(?:from|at|checkpoint|training)(?!.{0,80}(?:None|False)\s*$)|(?:success"
        r"fully )?loaded checkpoint"
        rf"|successfully loaded {_up_to('successfully loaded', 400)}(?:checkpoint|global_step|states?\.pt)"
        r"|loading checkpoint and "
        r"starting from iteration [1-9]"
        r"|continuing training from (?:checkpoint|global step [1-9])"
        r"|\brestor(?:ed|ing) (?:from )?(?:the )?checkpoint",
    ),
    _rule(
        _K.LAUNCH,
        "torchrun|running:|accelerate launch|deepspeed --|cmd = |setting omp_num_threads",
        r"^(?:Running: |\+ )?(?:\S*/)?(?:torchrun|accelerate launch|deepspeed)\s+-|^Running: |^cmd = "
        r"(?:deepspeed|torchrun|python)"
        r"|Setting OMP_NUM_THREADS environment variable",
    ),
    _rule(  # printed when the data is loaded: an error above it may have been survived (detectors.failed_starts)
        _K.LAUNCH,
        "running training|starting training",
        r"(?:^|\s)(?:\*{3,10}|={3,10}|-{3,10}) ?(?:running|starting) training ?(?:\*{3,10}|={3,10}|-{3,10})\s*$",
    ),
    _rule(
        _K.EARLY_STOP,
        "stopping early|stopping_early|early stop",
        r"\bstopping[ _]early\b|\bearly[ -]stopp(?:ed|ing)\b(?!\s*[\"':=_.])(?! (?:callback|patience|is|criteria))",
    ),
    _rule(
        _K.FINISHED,
        "training completed|training complete|training finished|finished training|training done|done "
        "training|training is|"
        "exits successfully|succeeded|training has|train metrics|exit_code=0|stopped: |completed "
        "successfully|successfully completed|complete!|wallclock_cap|exiting program at",
        r"\btraining (?:is |has )?(?:completed?|finished|done)\b|wallclock_cap|\b(?:sweep|run) complete"
        r"|\b(?:finished|done|completed) (?:the )?training\b(?!:| (?:warm|tok|step|epoch|iter|bpe))|exits successfully"
        r"|\bjob\b.*\bsucceeded\b|\bEXIT_CODE=0\b|`?Trainer\.fit`? stopped: "
        r"`?max_(?:steps|epochs)|\bcompleted successfully\b|^Successfully completed\.\s*$"
        r"|^\*{3,10} train metrics \*{3,10}\s*$"  # what the trainer of HF prints once it has trained
        r"|^\[exiting program at iteration \d{1,12}\]",  # as Megatron's --exit-interval had it planned
    ),
)
TOKENS: tuple[bytes, ...] = tuple(
    dict.fromkeys(
        [
            b"traceback (most",
            b"ray.exceptions.",
            b"exception ignored",
            *(token.encode() for token in (*EXCEPTION_TOKENS, *CAUGHT_TOKENS, *LAST_WORDS)),
            *(t.encode() for rule in RULES for t in rule.tokens),
        ]
    )
)
