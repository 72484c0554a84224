"""What squeue and sacct of many versions say, by answers written by hand after their manuals."""

from __future__ import annotations

import json
import unicodedata
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.slurm.answers import NOW, Scripted, accounts, entry, json_form, me, number, row, text_form, version
from trainmon.monitor.slurm import squeue
from trainmon.monitor.slurm.runner import TIMED_OUT, Answer
from trainmon.monitor.slurm.scheduler import Board, Scheduler


class At:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = NOW

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def look(runner: Scripted, *ids: str, mine: bool = True) -> Board:
    scheduler = Scheduler(At(), runner)
    if mine:
        scheduler.want_mine()
    scheduler.want(ids)
    return scheduler.look()


def test_text_of_18_08_and_json_of_23_02_say_the_same() -> None:
    old = look(Scripted(id=me(), squeue=version("slurm 18.08.9", text_form(row()))))
    new = look(Scripted(id=me(), squeue=version("slurm 23.02.7", json_form(entry()))))
    assert old.jobs == new.jobs
    job = new.jobs["12"]
    assert (job.state, job.started_at, job.ends_at) == ("RUNNING", 1_799_998_200.0, 1_800_005_400.0)
    assert (job.stdout, job.stderr) == ("/w/run/pre train-12.out", "/w/run/pre train-12.out")
    assert job.gpus == 16.0
    assert job.sources["state"] == "squeue"


PLAIN_NUMBERS = {
    "job_state": "RUNNING",
    "array_job_id": 0,
    "array_task_id": None,
    "het_job_id": 0,
    "het_job_offset": 0,
    "submit_time": 1_799_996_400,
    "start_time": 1_799_998_200,
    "end_time": 1_800_005_400,
    "exit_code": 0,
    "nodes": "gpu[003-004]",
}
SINGLE_STATE = {
    "job_state": "RUNNING",
    "exit_code": {"status": "SUCCESS", "return_code": 0, "signal": {"signal_id": 0, "name": "NONE"}},
}
EXPANDED = {
    "stdout_expanded": "/w/run/pre train-12.out",
    "stderr_expanded": "/w/run/pre train-12.out",
    "exit_code": {
        "status": ["SUCCESS"],
        "return_code": number(0),
        "signal": {"id": number(None), "name": ""},
    },
}


@pytest.mark.parametrize(
    ("release", "shape"),
    [
        ("21.08.8", PLAIN_NUMBERS),  # openapi v0.0.37
        ("22.05.8", PLAIN_NUMBERS | {"array_job_id": 0, "exit_code": 0}),  # v0.0.38
        ("23.02.7", SINGLE_STATE),  # data_parser v0.0.39
        ("23.11.4", {}),  # v0.0.40: states in lists, numbers with a word on whether they are set
        ("24.05.2", {"exit_code": EXPANDED["exit_code"], "standard_error": "/w/run/%x-%j.out"}),  # v0.0.41
        ("24.11.3", EXPANDED),  # v0.0.42: paths with their patterns filled in beside the patterns
        ("25.05.1", EXPANDED | {"restart_cnt": 0, "state_reason": "None"}),  # v0.0.43
    ],
)
def test_json_of_every_version_says_the_same_as_the_text(release: str, shape: dict[str, object]) -> None:
    text = look(Scripted(id=me(), squeue=version("slurm 20.11.9", text_form(row()))))
    document = look(Scripted(id=me(), squeue=version(f"slurm {release}", json_form(entry(**shape)))))
    assert document.jobs == text.jobs


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE"])
@pytest.mark.parametrize("release", ["18.08.9", "22.05.8", "24.11.3"])
def test_ends_that_no_small_cluster_plays(release: str, state: str) -> None:
    """Told alike by squeue's text, its JSON, and accounting once squeue has forgotten."""
    is_text = release.startswith("18")
    shape = PLAIN_NUMBERS | {"job_state": state} if release.startswith("22") else {"job_state": [state]}
    then = text_form(row(state=state)) if is_text else json_form(entry(**shape))
    job = look(Scripted(id=me(), squeue=version(f"slurm {release}", then))).jobs["12"]
    assert (job.state, job.ended_at) == (state, 1_800_005_400.0)
    line = {"JobID": "12", "JobIDRaw": "12", "User": "ann", "State": state, "ExitCode": "0:125", "JobName": "pre train",
            "Start": "2027-01-15T07:30:00", "End": "2027-01-15T09:30:00"}  # fmt: skip
    gone = version(
        f"slurm {release}", lambda words: Answer(1, stderr="slurm_load_jobs error: Invalid job id specified")
    )
    forgotten = look(Scripted(id=me(), squeue=gone, sacct=accounts(line)), "12")
    assert (forgotten.jobs["12"].state, forgotten.jobs["12"].ended_at) == (state, 1_800_005_400.0)


def test_a_field_that_a_version_lacks_is_left_out() -> None:
    runner = Scripted(id=me(), squeue=version("slurm 18.08.0", text_form(row(without=["command"]), lacks="command")))
    job = look(runner).jobs["12"]
    assert (job.name, job.command, job.state) == ("pre train", "", "RUNNING")


def test_json_of_an_old_version_that_breaks_gives_way_to_text() -> None:
    def answer(words: list[str]) -> Answer:
        return Answer(0, b'{"jobs": [{"job_') if "--json" in words else Answer(0, row())

    assert "12" in look(Scripted(id=me(), squeue=version("slurm 21.08.5", answer))).jobs


def test_json_of_every_job_of_a_large_cluster_is_asked_for_once() -> None:
    crowd = [entry(job_id=1000 + place, user_name="bob", name="x" * 3000) for place in range(1500)]
    document, text = json_form(entry(), *crowd), text_form(row())
    both = version("slurm 22.05.8", lambda words: document(words) if "--json" in words else text(words))
    runner = Scripted(id=me(), squeue=both)
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    assert set(scheduler.look().jobs) == {"12"}
    assert set(scheduler.look().jobs) == {"12"}
    assert ["--json" in words for words in runner.asked if words[0] == "squeue" and "--version" not in words] == [
        True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"job_state": "RUNNING"}, "RUNNING"),
        ({"job_state": ["COMPLETING", "FAILED"]}, "FAILED"),
        ({"job_state": ["RUNNING", "CONFIGURING"]}, "CONFIGURING"),
        ({"job_state": ["PENDING", "REQUEUED"]}, "PENDING"),
        ({"job_state": ["OUT_OF_MEMORY"]}, "OUT_OF_MEMORY"),
        ({"job_state": []}, ""),
        ({"job_state": None}, ""),
    ],
)
def test_states_of_json(told: dict[str, object], state: str) -> None:
    [job] = squeue.parse_json(json.dumps({"jobs": [entry(**told)]}).encode(), NOW)
    assert job.state == state


@pytest.mark.parametrize(
    ("told", "codes"),
    [
        ({"exit_code": 768}, (3, None)),
        ({"exit_code": 9}, (0, 9)),
        ({"exit_code": {"status": ["ERROR"], "return_code": number(3), "signal": {"id": number(None)}}}, (3, None)),
        ({"exit_code": {"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 11, "name": "SEGV"}}}, (0, 11)),
        ({"exit_code": None}, (None, None)),
    ],
)
def test_exit_codes_of_json(told: dict[str, object], codes: tuple[int | None, int | None]) -> None:
    [job] = squeue.parse_json(json.dumps({"jobs": [entry(job_state=["FAILED"], **told)]}).encode(), NOW)
    assert (job.exit_code, job.signal) == codes


def test_ids_of_arrays_and_het_jobs() -> None:
    told = [
        entry(job_id=13, array_job_id=number(12), array_task_id=number(3)),
        entry(job_id=12, array_job_id=number(12), array_task_string="4-9%2", job_state=["PENDING"]),
        entry(job_id=20, het_job_id=number(20), het_job_offset=number(0)),
        entry(job_id=21, het_job_id=number(20), het_job_offset=number(1)),
    ]
    jobs = squeue.parse_json(json.dumps({"jobs": told}).encode(), NOW)
    assert [job.id for job in jobs] == ["12_3", "12_[4-9%2]", "20+0", "20+1"]
    board = Board({job.id: job for job in jobs})
    assert [job.id for job in board.named("12")] == ["12_3", "12_[4-9%2]"]
    assert [job.id for job in board.named("12_3")] == ["12_3"]


def test_a_queued_job_has_an_estimate_and_no_start() -> None:
    told = {
        "state": "PENDING",
        "reason": "Priority",
        "starttime": "2027-01-15T10:00:00",
        "endtime": "N/A",
        "nodelist": "",
    }
    job = look(Scripted(id=me(), squeue=version("slurm 20.11.8", text_form(row(**told))))).jobs["12"]
    assert (job.started_at, job.start_estimate, job.reason) == (None, NOW + 7200.0, "Priority")


@given(name=st.text(max_size=80), work=st.text(max_size=80), others=st.lists(st.text(max_size=40), max_size=3))
def test_what_others_name_their_jobs_moves_no_field(name: str, work: str, others: list[str]) -> None:
    clean = "".join(c for c in work if c not in "\0\n" and not 0xD800 <= ord(c) < 0xE000)
    texts = ["".join(c for c in one if c != "\0" and not 0xD800 <= ord(c) < 0xE000) for one in (name, *others)]
    rows = [
        row(jobarrayid=str(place), jobid=str(place), name=text, workdir=f"/{clean}")
        for place, text in enumerate(texts, 1)
    ]
    jobs = squeue.parse_text(b"".join(rows), NOW)
    assert [(job.id, job.state, job.user) for job in jobs] == [
        (str(i), "RUNNING", "ann") for i in range(1, len(rows) + 1)
    ]
    assert not [job.name for job in jobs if any(unicodedata.category(character) == "Cc" for character in job.name)]


@given(st.binary(max_size=3000))
def test_no_answer_breaks_the_reading(data: bytes) -> None:
    squeue.parse_text(data, NOW)
    with suppress(ValueError):
        squeue.parse_json(data, NOW)


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(_VALUES)
def test_no_value_breaks_the_reading_of_json(value: object) -> None:
    for field in entry():
        squeue.parse_json(json.dumps({"jobs": [entry(**{field: value})]}).encode(), NOW)


def test_no_squeue_is_no_word_and_no_second_question() -> None:
    runner = Scripted(id=me())
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    assert not scheduler.look().is_there
    scheduler.look()
    assert len(runner.asked) == 1


def test_a_squeue_that_hangs_is_one_line_and_what_was_known_stays() -> None:
    answers = [Answer(0, row()), Answer(TIMED_OUT)]
    runner = Scripted(id=me(), squeue=version("slurm 20.02.1", lambda words: answers.pop(0)))
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    scheduler.look()
    board = scheduler.look()
    assert "has not answered" in board.problem
    assert set(board.jobs) == {"12"}


DONE = {
    "JobID": "12", "JobIDRaw": "12", "User": "ann", "State": "CANCELLED by 1000", "ExitCode": "0:15",
    "Submit": "2027-01-15T07:00:00", "Start": "2027-01-15T07:30:00", "End": "2027-01-15T07:50:00",
    "Timelimit": "02:00:00", "NodeList": "gpu003", "WorkDir": "/w/run", "JobName": "pre | train",
}  # fmt: skip


def test_accounting_is_asked_once_for_what_squeue_forgot() -> None:
    answers = [Answer(0, row()), *[Answer(0, b"")] * 3]
    runner = Scripted(id=me(), squeue=version("slurm 19.05.5", lambda words: answers.pop(0)), sacct=accounts(DONE))
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    scheduler.look()
    job = scheduler.look().jobs["12"]
    assert (job.state, job.reason, job.signal, job.ended_at) == ("CANCELLED", "by user 1000", 15, NOW - 600.0)
    assert job.stdout == "/w/run/pre train-12.out"  # what squeue said before
    assert (job.sources["state"], job.sources["stdout"]) == ("sacct", "squeue")
    scheduler.look()
    assert sum(words[0] == "sacct" for words in runner.asked) == 1


def test_accounting_of_an_old_version_lacks_a_field() -> None:
    runner = Scripted(
        id=me(), squeue=version("slurm 18.08.1", lambda words: Answer(0, b"")), sacct=accounts(DONE, lacks="WorkDir")
    )
    job = look(runner, "12").jobs["12"]
    assert (job.state, job.work_dir, job.name) == ("CANCELLED", "", "pre | train")


def test_a_newline_in_a_name_is_no_record_of_accounting() -> None:
    evil = DONE | {"JobName": "a\n77\x1f77\x1froot\x1fCOMPLETED"}
    board = look(
        Scripted(id=me(), squeue=version("slurm 20.11.1", lambda w: Answer(0, b"")), sacct=accounts(evil)), "12"
    )
    assert set(board.jobs) == {"12"}


def test_accounting_knows_what_a_job_was_told_to_wait_for() -> None:
    """Its dependency was met, and squeue has forgotten it; the line that submitted it may go over several lines."""
    line = DONE | {
        "State": "COMPLETED",
        "Reason": "Dependency",
        "SubmitLine": "sbatch -d afterany:9:10+5 --wrap first\nsecond\nthird",
    }
    other = {"JobID": "13", "JobIDRaw": "13", "State": "FAILED", "SubmitLine": "sbatch job.sh --dependency afterok"}
    squeue = version("slurm 22.05.8", lambda words: Answer(1, stderr="slurm_load_jobs error: Invalid job id specified"))
    board = look(Scripted(id=me(), squeue=squeue, sacct=accounts(line, DONE | other)), "12", "13")
    assert {one: (job.dependency, job.reason) for one, job in board.jobs.items()} == {
        "12": ("afterany:9:10+5", ""),
        "13": ("", ""),
    }


def test_a_version_that_keeps_no_submit_line_is_not_asked_for_it() -> None:
    squeue = version("slurm 20.11.1", lambda words: Answer(0, b""))
    runner = Scripted(id=me(), squeue=squeue, sacct=accounts(DONE, lacks="SubmitLine"))
    assert set(look(runner, "12").jobs) == {"12"}
    assert sum(words[0] == "sacct" for words in runner.asked) == 1


def test_starts_of_a_requeued_job() -> None:
    first = DONE | {"State": "NODE_FAIL", "ExitCode": "0:0"}
    second = DONE | {"State": "RUNNING", "Start": "2027-01-15T07:52:00", "End": "Unknown"}
    runner = Scripted(
        id=me(),
        squeue=version("slurm 20.11.1", text_form(row(restartcnt="1", starttime="2027-01-15T07:52:00"))),
        sacct=accounts(first, second),
    )
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    board = scheduler.look()
    assert [start.state for start in board.starts["12"]] == ["NODE_FAIL", "RUNNING"]
    scheduler.look()
    assert sum(words[0] == "sacct" for words in runner.asked) == 1


def test_without_slurmdbd_completion_files_are_asked_then_nobody() -> None:
    def sacct(words: list[str]) -> Answer:
        return Answer(1, stderr="Slurm accounting storage is disabled")

    answers = [Answer(0, row()), *[Answer(0, b"")] * 5]
    runner = Scripted(id=me(), squeue=version("slurm 20.11.1", lambda words: answers.pop(0)), sacct=sacct)
    scheduler = Scheduler(At(), runner)
    scheduler.want(["12", "13"])
    scheduler.want_mine()
    for _ in range(4):
        board = scheduler.look()
    assert board.jobs["12"].state == "GONE"
    asked = [words for words in runner.asked if words[0] == "sacct"]
    assert ["-c" in words for words in asked] == [False, True]


def test_jobs_of_others_are_asked_for_by_their_owner_in_the_same_call() -> None:
    rows = [row(), row(jobarrayid="50", jobid="50", username="bob")]
    runner = Scripted(id=me(), squeue=version("slurm 20.11.1", lambda words: Answer(0, b"".join(rows))))
    scheduler = Scheduler(At(), runner)
    scheduler.want_mine()
    scheduler.want(["50"])
    scheduler.look()
    scheduler.look()
    calls = [words for words in runner.asked if words[0] == "squeue" and "--version" not in words]
    assert [words[words.index("-O") - 2] if "-u" not in words else words[words.index("-u") + 1] for words in calls][
        1:
    ] == ["ann,bob"]


def test_nothing_but_a_job_id_reaches_a_command() -> None:
    runner = Scripted(id=me(), squeue=version("slurm 20.11.1", lambda words: Answer(0, b"")), sacct=accounts())
    look(runner, "12; rm -rf /", "$(id)", "-u root", "13", mine=False)
    asked = [words for words in runner.asked if words[0] == "squeue" and "--version" not in words]
    assert all(words[words.index("-j") + 1] == "13" for words in asked)
