"""The job's state from its last words and from silence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmon.monitor.finding import Verdict
from trainmon.monitor.job.judging import JobState, Pulse, job_state, silence_limit_s
from trainmon.monitor.snapshot import State
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import Note, NoteKind, TimeKind

LOG = "train.log"
OLD = Pulse(age_s=3 * 86400.0, gap_p99_s=5.0, seen_growing=False)


def note(kind: NoteKind, line: int, text: str = "words", *, teardown: bool = False) -> Note:
    return Note(LOG, line, line * 80, kind, text, step=10.0, teardown=teardown)


def state(*notes: Note, pulse: Pulse = OLD, last: float = 10.0, total: float | None = 100.0) -> JobState:
    return job_state(notes, {LOG: 50}, (0.0, last), total, pulse, Thresholds())


@pytest.mark.parametrize(
    ("notes", "expected", "verdict"),
    [
        ([note(NoteKind.CUDA_OOM, 60), note(NoteKind.SIGTERM, 61)], State.OOM, Verdict.FAIL),
        ([note(NoteKind.TRACEBACK, 60), note(NoteKind.CUDA_OOM, 60)], State.OOM, Verdict.FAIL),
        ([note(NoteKind.TRACEBACK, 60)], State.CRASHED, Verdict.FAIL),
        ([note(NoteKind.CANCELLED, 60), note(NoteKind.TIME_LIMIT, 60)], State.TIME_LIMIT, Verdict.WARN),
        ([note(NoteKind.SIGTERM, 60), note(NoteKind.TRACEBACK, 61)], State.CANCELLED, Verdict.WARN),
        ([note(NoteKind.KEYBOARD_INTERRUPT, 60)], State.CANCELLED, Verdict.WARN),
        ([note(NoteKind.FINISHED, 60)], State.FINISHED, Verdict.PASS),
        ([note(NoteKind.FINISHED, 60), note(NoteKind.TRACEBACK, 61, teardown=True)], State.FINISHED, Verdict.PASS),
        ([note(NoteKind.TRACEBACK, 20)], State.UNKNOWN, Verdict.NO_DATA),
        ([note(NoteKind.NCCL_TIMEOUT, 60), note(NoteKind.TIME_LIMIT, 70)], State.CRASHED, Verdict.FAIL),
    ],
)
def test_last_words(notes: list[Note], expected: State, verdict: Verdict) -> None:
    found = state(*notes)
    assert (found.state, found.verdict) == (expected, verdict)


def test_an_error_that_the_run_outlived_is_kept_but_does_not_end_it() -> None:
    found = state(note(NoteKind.TRACEBACK, 20, "ValueError: early"))
    assert (found.root_error, found.outlived) == (None, "ValueError: early")
    assert not found.ended


def test_teardown_noise_is_never_the_root_error() -> None:
    found = state(note(NoteKind.TRACEBACK, 60, "ChildFailedError", teardown=True), note(NoteKind.CUDA_OOM, 61, "OOM"))
    assert found.root_error == "OOM"


def test_all_steps_done_is_finished_whatever_the_exit_prints() -> None:
    assert state(note(NoteKind.TRACEBACK, 60), last=100.0).state is State.FINISHED


def test_a_last_checkpoint_that_could_not_be_written_is_no_good_end() -> None:
    found = state(note(NoteKind.TRACEBACK, 60, "OSError: [Errno 28] No space left on device"), last=100.0)
    assert (found.state, found.verdict) == (State.CRASHED, Verdict.FAIL)


def test_a_program_that_aborts_was_made_to_by_what_it_said_before() -> None:
    aborted = note(NoteKind.SEGFAULT, 61, "Aborted (core dumped)")
    freed = note(NoteKind.ERROR, 60, "double free or corruption")
    assert state(freed, aborted).root_error == freed.text
    assert state(aborted).root_error == "Aborted (core dumped)"


def test_an_old_log_is_never_shown_as_live_nor_as_hung() -> None:
    assert state().state is State.UNKNOWN


@pytest.mark.parametrize(("age_s", "expected"), [(2.0, State.RUNNING), (400.0, State.SLOW), (1200.0, State.HUNG)])
def test_silence_of_a_run_that_was_seen_growing(age_s: float, expected: State) -> None:
    assert state(pulse=Pulse(age_s, 5.0, seen_growing=True)).state is expected


def test_the_limit_follows_the_runs_own_gaps() -> None:
    limits = Thresholds()
    assert silence_limit_s(True, 300.0, limits) == 3000.0
    assert silence_limit_s(True, 1.0, limits) == 600.0
    assert silence_limit_s(False, None, limits) == 1800.0


@pytest.mark.parametrize(
    "text",
    [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        "failed (exitcode: 1) local_rank: 3 (pid: 4243) of binary: /usr/bin/python",
        "process exits with return code = 1",
    ],
)
def test_a_launchers_report_alone_ends_the_job_without_a_cause(text: str) -> None:
    found = state(note(NoteKind.ERROR, 60, text, teardown=True))
    assert (found.state, found.root_error) == (State.CRASHED, None)
    assert "not in this log" in found.reason
    # Before the newest record, or with the steps all done, it ended nothing.
    assert state(note(NoteKind.ERROR, 20, text, teardown=True)).state is State.UNKNOWN
    assert state(note(NoteKind.ERROR, 60, text, teardown=True), last=100.0).state is State.FINISHED


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("failed (exitcode: -9) local_rank: 3 (pid: 4243) of binary: /usr/bin/python", "SIGKILL"),
        ("process exits with return code = -11", "SIGSEGV"),
        ("trainer-1 exited with code 135", "SIGBUS"),
    ],
)
def test_a_launchers_report_that_names_a_signal_is_named_where_nothing_else_is(text: str, signal: str) -> None:
    report = note(NoteKind.ERROR, 61, text, teardown=True)
    assert state(report).root_error == f"{text} ({signal})"
    assert state(note(NoteKind.ERROR, 60, "ValueError: bad"), report).root_error == "ValueError: bad"


def test_a_workers_own_report_is_pointed_to() -> None:
    found = state(
        note(NoteKind.ERROR, 60, "process exits with return code = 1", teardown=True),
        note(NoteKind.ERROR, 61, "error_file: /tmp/run/3/error.json", teardown=True),
    )
    assert found.reason.endswith("what the worker died of is in /tmp/run/3/error.json")


def test_a_job_that_is_stopped_for_a_failed_worker_has_crashed() -> None:
    failed = note(NoteKind.ERROR, 60, "srun: error: n3: task 5: Exited with exit code 1", teardown=True)
    stopped = note(NoteKind.CANCELLED, 61, "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-05-03T02:13:00 ***")
    assert state(failed, stopped).state is State.CRASHED
    assert state(stopped, replace(failed, line_no=62)).state is State.CANCELLED
    asked = replace(failed, text="srun: error: n3: task 5: Exited with exit code 143")
    assert state(asked, stopped).state is State.CANCELLED


def test_an_exception_that_was_named_before_and_lived_through_is_no_end() -> None:
    lived = [note(NoteKind.ERROR, line, "lib.BadRowError: row 7") for line in (20, 30)]
    last = note(NoteKind.ERROR, 60, "lib.BadRowError: row 9")
    assert state(*lived, last).state is State.UNKNOWN
    assert state(*lived[:1], last).state is State.CRASHED
    assert state(*lived).root_error is None


@pytest.mark.parametrize(("last", "is_finished"), [(98.0, False), (100.0, True), (120.0, True), (499.0, False)])
def test_a_total_that_is_far_exceeded_was_of_something_else(last: float, is_finished: bool) -> None:
    assert (state(last=last).state is State.FINISHED) is is_finished


TIMED_OUT = "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (NoteKind.TRACEBACK, "ValueError: shard 12 is truncated"),
        (NoteKind.TRACEBACK, "RuntimeError: CUDA error: an illegal memory access was encountered"),
        (NoteKind.SEGFAULT, "Fatal Python error: Segmentation fault"),
    ],
)
def test_ranks_that_waited_for_one_that_had_failed_are_not_the_cause(kind: NoteKind, words: str) -> None:
    failed, waited = note(kind, 60, words), note(NoteKind.NCCL_TIMEOUT, 70, TIMED_OUT)
    assert state(failed, waited).root_error == words
    assert state(waited).root_error == TIMED_OUT
    assert state(note(NoteKind.NCCL_TIMEOUT, 55, TIMED_OUT), failed).root_error == TIMED_OUT


@pytest.mark.parametrize(
    "words",
    [
        "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 2.",
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ],
)
def test_what_a_time_out_brought_about_is_not_its_cause(words: str) -> None:
    found = state(note(NoteKind.TRACEBACK, 60, words), note(NoteKind.NCCL_TIMEOUT, 70, TIMED_OUT))
    assert found.root_error == TIMED_OUT


@pytest.mark.parametrize(
    ("failed_s", "root"), [(90.0, "ValueError: bad"), (110.0, TIMED_OUT), (None, "ValueError: bad")]
)
def test_which_of_two_files_was_first_their_clocks_tell(failed_s: float | None, root: str) -> None:
    waited = replace(note(NoteKind.NCCL_TIMEOUT, 60, TIMED_OUT), time=100.0, time_kind=TimeKind.ABSOLUTE)
    failed = replace(
        note(NoteKind.TRACEBACK, 70, "ValueError: bad"),
        source="rank1.log",
        time=failed_s,
        time_kind=TimeKind.NONE if failed_s is None else TimeKind.ABSOLUTE,
    )
    assert state(failed, waited).root_error == root
