from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import kinds, read
from trainmon.tails.note_rules import RULES

SAID = [
    (
        "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2024-10-10T02:20:29 DUE TO TIME LIMIT ***",
        {"time_limit", "cancelled"},
    ),
    (
        "slurmstepd: error: *** STEP 26.0 ON n3 CANCELLED AT 2023-03-10T09:46:31 DUE TO PREEMPTION ***",
        {"preempted", "cancelled"},
    ),
    (
        "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2024-10-10T02:20:29 DUE TO NODE FAILURE ***",
        {"node_fail", "cancelled"},
    ),
    ("slurmstepd-n1: error: StepId=3.0 exceeded memory limit (239546368 > 209715200), being killed", {"host_oom"}),
    ("slurmstepd: error: Job 7 exceeded memory limit (9000 > 8000), being killed", {"host_oom"}),
    ("slurmstepd: error: Exceeded step memory limit at some point.", set()),
    ("slurmstepd-n1.hpc: error: execve(): train: No such file or directory", {"error"}),
    ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0.", {"host_oom"}),
    ("srun: error: n3: task 5: Exited with exit code 1", {"error"}),
    ("[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 706.00 MiB", {"cuda_oom"}),
    ("RuntimeError: HIP out of memory. Tried to allocate 2 GiB", {"cuda_oom"}),
    ("[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)", {"nccl_timeout"}),
    ("[rank1]: ERROR NCCL watchdog timeout on rank 1", {"nccl_timeout"}),
    ("NCCL watchdog time-out", {"nccl_timeout"}),
    (
        "[E ProcessGroupNCCL.cpp:456] Some NCCL operations have failed or timed out. Due to the asynchronous nature",
        {"nccl_timeout"},
    ),
    ("2025-06-01 10:00:00 ERROR train.py:99 Uncaught exception: ZeroDivisionError: division by zero", {"error"}),
    ("Unhandled exception at 0x7f: access violation", {"error"}),
    ("installed the uncaught exception handler", set()),
    ("MemoryError", {"host_oom"}),
    ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array", {"host_oom"}),
    ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate", {"host_oom"}),
    ("RuntimeError: Timed out initializing process group in store based barrier on rank: 90", {"init_timeout"}),
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid=0, GPU has fallen off the bus.", {"xid"}),
    ("Fatal Python error: Segmentation fault", {"segfault"}),
    ("python: line 3: 1285945 Bus error (core dumped)", {"segfault"}),
    ("Main process received SIGTERM, exiting", {"sigterm"}),
    ("Received 15 death signal, shutting down workers", {"sigterm"}),
    ("SignalException: Process 12152 got signal: 1", {"sighup"}),
    ("SignalException: Process 12152 got signal: 15", {"sigterm"}),
    ("launch.sh: line 252: 1285945 Killed                  torchrun", {"sigkill"}),
    ("KeyboardInterrupt", {"keyboard_interrupt"}),
    (
        "RuntimeError: The server socket has failed to bind to [::]:6000 (errno: 98 - Address already in use).",
        {"error"},
    ),
    (
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536",
        {"loss_scale_overflow", "skipped_step"},
    ),
    (
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        {"loss_scale_overflow", "skipped_step"},
    ),
    ("successfully saved checkpoint at iteration    5000 to /out", {"checkpoint_saved"}),
    ("Saving model checkpoint to output/checkpoint-200", {"checkpoint_saved"}),
    ("successfully loaded checkpoint from /ckpt at iteration 800", {"resumed_from_checkpoint"}),
    ("Resuming from /checkpoints/global_step_100", {"resumed_from_checkpoint"}),
    ("Training completed", {"finished_ok"}),
    ("`Trainer.fit` stopped: `max_steps=100` reached.", {"finished_ok"}),
    ("[exiting program at iteration 1500] datetime: 2026-11-30 08:00:00 ", {"finished_ok"}),
    ("[exiting program after 700.1 minutes] datetime: 2026-11-30 08:00:00 ", {"time_limit"}),
    ("[exiting program after receiving SIGTERM.] datetime: 2026-11-30 08:00:00 ", {"sigterm"}),
    ("stopping_early: wallclock_cap train_time:600038ms", {"early_stop", "finished_ok"}),
    ("+ torchrun --nproc_per_node=8 train.py", {"launch"}),
    ("The node was low on resource: memory. Container pytorch was using 200Gi", {"host_oom"}),
    ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error", {"error"}),
    ("thread 'main' panicked at src/main.rs:12:5:", {"error"}),
    ("Loss is nan, stopping training", {"error"}),
    ("ERROR: loss is NaN at step 20, aborting", {"error"}),
    ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", {"time_limit"}),
    ("=>> PBS: job killed: walltime 3612 exceeded limit 3600", {"time_limit"}),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", {"host_oom"}),
    ("  what():  std::bad_alloc", {"host_oom", "error"}),
    ("  what():  CUDA driver error: unspecified launch failure", {"error"}),
    ("Out of memory error on GPU 3. Cannot allocate 2.5GB memory on GPU 3", {"cuda_oom"}),
    ("Spot instance interruption notice received", {"preempted"}),
    ("Detected TPU preemption, exiting", {"preempted"}),
    ("The VM is being preempted", {"preempted"}),
    ("Fatal Python error: Aborted", {"segfault"}),
    ("*** SIGABRT received at time=1700000000 on cpu 5 ***", {"segfault"}),
    ("Aborted", {"segfault"}),
    ("run.sh: line 3: 4242 Aborted                 python train.py", {"segfault"}),
    ("Illegal instruction", {"segfault"}),
    ("Terminated", {"sigterm"}),
    ("run.sh: line 3: 4242 Terminated              python train.py", {"sigterm"}),
    ("double free or corruption (!prev)", {"error"}),
    ("malloc(): memory corruption", {"error"}),
    ("train: model.cu:12: void step(): Assertion `n > 0' failed.", {"error"}),
    ("tee: train.log: No space left on device", {"error"}),
    ("[CUDA ERROR] at file train.cu:12:", {"error"}),
]
NOT_SAID = [
    '    "tuner_early_stopping": 5, ',
    '    raise ChildFailedError("x")',
    "Loading checkpoint from /home/user/saved-weights/global_step8000/x.pt",
    "Checkpoints will be loaded from and saved to /out/checkpoint",
    "Resuming training from checkpoint: None",
    "Finished training warmup: 72.2s",
    "  save_interval ................... 1000",
    "Signal handler installed.",
    "check_grad_overflow=False",
    "the early stopping callback is off",
    "no file descriptors were harmed",
    "the loss is nan in the first step only",
    "preemption handler installed",
    "Received preemption handler config",
    "Terminated 3 of 5 episodes early",
    "Aborted request 5 of the rollout engine",
    "UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode",
    "the assertion of the paper holds",
]


@pytest.mark.parametrize(("line", "expected"), SAID)
def test_what_is_said(line: str, expected: set[str]) -> None:
    assert set(kinds(read(f"{line}\n"))) == expected


@pytest.mark.parametrize("line", NOT_SAID)
def test_what_is_not_said(line: str) -> None:
    assert kinds(read(f"{line}\n")) == []


@pytest.mark.parametrize(
    "line",
    [
        "W0511 03:22:23.563000 41337 torch/x/api.py:1010] Sending process 41405 closing signal SIGTERM",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "[2024-02-14 20:37:10,276] [ERROR] [launch.py:321:sigkill_handler] ['python'] exits with return code = 1",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "WARNING: destroy_process_group() was not called before program exit, which can leak resources.",
    ],
)
def test_teardown_is_told_apart(line: str) -> None:
    notes = read(f"{line}\n").notes
    assert notes
    assert all(note.teardown for note in notes)


def test_every_rule_can_be_reached() -> None:
    """A token that its own expression does not hold would never let a line through."""
    assert all(token == token.lower() and token for rule in RULES for token in rule.tokens)


FRAME = '  File "train.py", line 7, in main\n    loss.backward()\n'


def test_a_traceback_is_one_note() -> None:
    parsed = read(
        f"step: 5 loss: 2.5\nTraceback (most recent call last):\n{FRAME}ValueError: Axis limits "
        f"cannot be NaN\nmore words\n"
    )
    [note] = parsed.notes
    assert (note.kind.value, note.line_no, note.step, note.text) == (
        "traceback",
        2,
        5.0,
        "ValueError: Axis limits cannot be NaN",
    )


@pytest.mark.parametrize("name", ["numpy._core._exceptions._ArrayMemoryError", "lib._errors.__InnerError", "_Failed"])
def test_an_exception_of_a_private_name_ends_a_traceback(name: str) -> None:
    notes = read(f"Traceback (most recent call last):\n{FRAME}{name}: Unable to allocate 12.0 GiB\n").notes
    assert [note.text for note in notes if note.kind.value == "traceback"] == [f"{name}: Unable to allocate 12.0 GiB"]


def test_interleaved_ranks() -> None:
    lines: list[str] = []
    pairs = [
        ("Traceback (most recent call last):",) * 2,
        ('  File "a.py", line 1, in f',) * 2,
        ("    x = y",) * 2,
        ("RuntimeError: first", "KeyError: second"),
    ]
    for left, right in pairs:
        lines += [f"[rank0]: {left}", f"[rank1]: {right}"]
    texts = sorted(note.text for note in read("\n".join(lines) + "\n").notes)
    assert texts == ["KeyError: second", "RuntimeError: first"]


def test_a_chain_is_told_by_its_first_cause() -> None:
    for words in (
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ):
        parsed = read(
            f"Traceback (most recent call last):\n{FRAME}OSError: disk is full\n\n{words}\n\n"
            f"Traceback (most recent call last):\n{FRAME}RuntimeError: could not save\n"
        )
        assert [note.text for note in parsed.notes] == ["OSError: disk is full"]


def test_a_traceback_in_a_warning_was_survived() -> None:
    prefix = "W0530 14:48:26.433000 2622492 site-packages/torch/_dynamo/convert_frame.py:1233] "
    parsed = read(
        "".join(
            f"{prefix}{line}\n"
            for line in ["Traceback (most recent call last):", *FRAME.splitlines(), "SystemError: x"]
        )
    )
    assert kinds(parsed) == []


def test_an_ignored_exception_is_teardown() -> None:
    parsed = read(
        f"Exception ignored in: <function f at 0x7f>\nTraceback (most recent call "
        f"last):\n{FRAME}RuntimeError: at exit\n"
    )
    assert [(note.kind.value, note.teardown) for note in parsed.notes] == [("traceback", True)]


def test_an_open_traceback_is_told_at_the_end() -> None:
    parsed = read(f"Traceback (most recent call last):\n{FRAME}KeyboardInterrupt")
    assert set(kinds(parsed)) == {"traceback", "keyboard_interrupt"}


def test_a_checkpoint_names_its_step() -> None:
    parsed = read("step: 7 loss: 2.5\nSaving model checkpoint to output/checkpoint-200\n")
    assert [(note.step, note.text) for note in parsed.notes] == [
        (200.0, "Saving model checkpoint to output/checkpoint-200")
    ]


def test_each_ranks_part_of_a_checkpoint_is_one_event() -> None:
    parsed = read(
        "".join(f"[rank-{rank}]: Saving model to /out/global_step_110/rank_{rank}.pt\n" for rank in range(16))
    )
    assert kinds(parsed) == ["checkpoint_saved"]
    parsed = read("".join(f"Saving model to /out/global_step_{step}/m.pt\n" for step in (100, 200)))
    assert kinds(parsed) == ["checkpoint_saved"] * 2


def test_each_launch_of_a_crash_loop_is_told() -> None:
    start = (
        "+ torchrun --nproc_per_node=8 train.py\n" * 2
        + "loaded checkpoint from /ckpt at iteration 100\nstep 101 loss 2.5\n"
    )
    log = read((start + "RuntimeError: CUDA error: an illegal memory access was encountered\n") * 3)
    assert kinds(log, teardown=False) == ["launch", "resumed_from_checkpoint", "error"] * 3


def test_a_group_is_told_by_the_first_exception_in_it() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "x.py", line 1, in <module>\n  |     main()\n'
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "x.py", line 2, in f\n'
        "    |     raise ValueError('bad shard')\n"
        "    | ValueError: bad shard\n    +------------------------------------\n"
    )
    assert [note.text for note in read(text).notes] == ["ValueError: bad shard"]


def test_an_exception_that_names_a_step_is_no_record() -> None:
    parsed = read(
        "step 60 loss 2.5\nTraceback (most recent call last):\n"
        '  File "train.py", line 10, in <module>\n    main()\nAssertionError: loss is NaN at step 61\n'
    )
    assert parsed.records == 1
    assert [note.text for note in parsed.notes] == ["AssertionError: loss is NaN at step 61"]


def test_a_remote_workers_error_is_told_by_its_own_exception() -> None:
    parsed = read(
        "step 60 loss 2.5\nray.exceptions.RayTaskError(ValueError): ray::Worker.step() (pid=123, ip=10.0.0.3)\n"
        '  File "worker.py", line 3, in step\n    check(batch)\nValueError: prompt too long\n'
    )
    assert [(note.kind.value, note.text) for note in parsed.notes] == [("traceback", "ValueError: prompt too long")]


STEPS = "".join(f"step {at} loss {3 - at / 9}\n" for at in range(1, 6))


def roots(text: str) -> list[str]:
    return [note.text for note in read(text).notes if note.kind.value == "error" and not note.teardown]


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("error: cannot read the index of shard 12: permission denied", "exit status 1"),
        (
            "2025-06-01 10:00:00 ERROR data.py:12 shard 12 has no index",
            "srun: error: n3: task 3: Exited with exit code 1",
        ),
        ("fatal: not a checkpoint folder: /ckpt/9", "make: *** [Makefile:12: train] Error 1"),
        ("[2025-06-01 10:00:00,123] [ERROR] [data] - shard 12 has no index", "process exited with code 1"),
    ],
)
def test_what_was_said_before_a_launcher_s_exit_code_is_the_cause(said: str, end: str) -> None:
    assert [said.endswith(root) for root in roots(f"{STEPS}{said}\n{end}\n")] == [True]
    assert roots(f"{STEPS}{said}\nstep 6 loss 2.0\n{end}\n") == []  # it went on
    assert roots(f"{STEPS}{said}\n") == []  # and no end at all
    assert roots(f"{STEPS}{said}\nRuntimeError: no\n{end}\n") == ["RuntimeError: no"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("srun: error: n1: tasks 0-7: Killed", "sigkill"),
        ("torch._inductor.exc.InductorError: RuntimeError: Triton Error [CUDA]: out of memory", "cuda_oom"),
        ('ErrorMessage "RuntimeError: shapes do not fit"', "error"),
        ("panic: runtime error: index out of range", "error"),
    ],
)
def test_more_words_for_an_end(said: str, kind: str) -> None:
    assert kinds(read(STEPS + said + "\n"), teardown=False) == [kind]
