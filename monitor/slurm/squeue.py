"""What squeue says, in either of its forms: JSON where the version has it, fields of fixed width everywhere else.

Names and paths are other people's text: the fields are cut at byte positions, so that neither a newline nor a `|` in a
job's name can stand for anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trainmon.monitor.slurm import fields
from trainmon.monitor.slurm.paths import Names, first_node, output_path
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.text import printable

# Field of ``squeue -O`` -> its width in bytes. The job's name comes last: it is what others choose most freely.
WIDTHS: Final[dict[str, int]] = {
    "jobarrayid": 256,
    "jobid": 24,
    "username": 64,
    "state": 24,
    "reason": 96,
    "exit_code": 16,
    "restartcnt": 12,
    "submittime": 24,
    "starttime": 24,
    "endtime": 24,
    "nodelist": 1024,
    "tres": 512,
    "dependency": 512,
    "workdir": 1024,
    "stdout": 1024,
    "stderr": 1024,
    "command": 1024,
    "name": 512,
}
_UNKNOWN_FIELD = lazy(r"[Ii]nvalid (?:job )?(?:format|field) (?:specification|requested): \W*(\w+)")
_ARRAY = lazy(r"(\d+)_(\d+)", re.ASCII)
_VERSION = lazy(r"\b(\d{2,4})\.(\d{1,2})\b")
JSON_SINCE: Final = (21, 8)
FILTERED_SINCE: Final = (23, 2)


def version_of(text: str) -> tuple[int, int] | None:
    """(year, month) of what ``squeue --version`` prints.

    >>> version_of("slurm-wlm 22.05.8"), version_of("slurm 18.08.9-1"), version_of("what?")
    ((22, 5), (18, 8), None)
    """
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def unknown_field(complaint: str) -> str | None:
    """The field that this version of squeue or sacct does not have, by its complaint.

    >>> unknown_field("squeue: error: Invalid job format specification: tres"), unknown_field("no")
    ('tres', None)
    """
    found = _UNKNOWN_FIELD.search(complaint)
    return found[1] if found else None


def text_format(without: Iterable[str] = ()) -> str:
    """The argument of ``squeue -O``."""
    left_out = set(without)
    return ",".join(f"{name}:{width}" for name, width in WIDTHS.items() if name not in left_out)


def parse_text(data: bytes, asked_at: float, without: Iterable[str] = ()) -> list[JobInfo]:
    """The jobs in fields of fixed width. A record is as many bytes as its fields are wide, whatever is in them."""
    left_out = set(without)
    names = [name for name in WIDTHS if name not in left_out]
    size = sum(WIDTHS[name] for name in names) + 1
    jobs = []
    for at in range(0, len(data) - size + 2, size):
        row: dict[str, str] = {}
        place = at
        for name in names:
            row[name] = _decoded(data[place : place + WIDTHS[name]]).rstrip(" ")
            place += WIDTHS[name]
        job = _of_row(row, asked_at)
        if job is not None:
            jobs.append(job)
    return jobs


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _of_row(row: Mapping[str, str], asked_at: float) -> JobInfo | None:
    identity = row.get("jobarrayid", "").strip() or row.get("jobid", "").strip()
    if not is_id(identity):
        return None
    code, signal = fields.exit_codes(row.get("exit_code", ""))
    restarts = row.get("restartcnt", "").strip()
    return _made(
        identity,
        row.get("jobid", "").strip(),
        {
            "state": fields.state_word(row.get("state", "")),
            "name": row.get("name", ""),
            "user": row.get("username", ""),
            "reason": fields.word(row.get("reason", "")),
            "nodes": fields.word(row.get("nodelist", "")),
            "submitted_at": fields.moment(row.get("submittime", "")),
            "exit_code": code,
            "signal": signal,
            "stdout": fields.word(row.get("stdout", "")),
            "stderr": fields.word(row.get("stderr", "")),
            "work_dir": fields.word(row.get("workdir", "")),
            "command": fields.word(row.get("command", "")),
            "restarts": int(restarts) if restarts.isdigit() else None,
            "dependency": fields.word(row.get("dependency", "")),
            "gpus": fields.gpus(row.get("tres", "")),
        },
        fields.moment(row.get("starttime", "")),
        fields.moment(row.get("endtime", "")),
        asked_at,
    )


def is_id(text: str) -> bool:
    """Whether `text` is a job's id: 12, 12_3, 12_[4-9%2], 12+1.

    >>> [is_id(text) for text in ("12", "12_3", "12_[4-9,11%2]", "12+1", "12;ls", "")]
    [True, True, True, True, False, False]
    """
    return re.fullmatch(r"\d{1,12}(?:_\d{1,9}|_\[[\d,:%.-]*\]|\+\d{1,4})?", text, re.ASCII) is not None


def parse_json(data: bytes, asked_at: float) -> list[JobInfo]:
    """The jobs of ``squeue --json`` from 21.08 to now. Raises ValueError when it is no such document."""
    document = json.loads(_decoded(data))
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise ValueError("no list of jobs")
    found = (_of_entry(entry, asked_at) for entry in jobs if isinstance(entry, dict))
    return [job for job in found if job is not None]


def _of_entry(entry: Mapping[str, Any], asked_at: float) -> JobInfo | None:
    number = _number(entry.get("job_id"))
    if number is None:
        return None
    own = identity = f"{number:.0f}"
    array, task = _number(entry.get("array_job_id")), _number(entry.get("array_task_id"))
    het, offset = _number(entry.get("het_job_id")), _number(entry.get("het_job_offset"))
    tasks = _text(entry.get("array_task_string"))
    if array and task is not None:
        identity = f"{array:.0f}_{task:.0f}"
    elif array and tasks:
        identity = f"{array:.0f}_[{tasks}]"
    elif het:
        identity = f"{het:.0f}+{offset or 0:.0f}"
    if not is_id(identity):
        return None
    code, signal = _exit(entry.get("exit_code"))
    return _made(
        identity,
        own,
        {
            "state": _state(entry.get("job_state")),
            "name": _text(entry.get("name")),
            "user": _text(entry.get("user_name")),
            "reason": fields.word(_text(entry.get("state_reason"))),
            "nodes": _text(entry.get("nodes")),
            "submitted_at": _time(entry.get("submit_time")),
            "exit_code": code,
            "signal": signal,
            "stdout": _text(entry.get("stdout_expanded")) or _text(entry.get("standard_output")),
            "stderr": _text(entry.get("stderr_expanded")) or _text(entry.get("standard_error")),
            "work_dir": _text(entry.get("current_working_directory")),
            "command": _text(entry.get("command")),
            "restarts": int(_number(entry.get("restart_cnt")) or 0),
            "dependency": _text(entry.get("dependency")),
            "gpus": fields.gpus(_text(entry.get("tres_alloc_str")) or _text(entry.get("tres_req_str"))),
        },
        _time(entry.get("start_time")),
        _time(entry.get("end_time")),
        asked_at,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """A number of any version: plain, or with a word on whether it is set."""
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set") and not value.get("infinite") else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e15 else None


def _time(value: object) -> float | None:
    return _number(value) or None


def _state(value: object) -> str:
    """The word that tells most of a state and its flags."""
    parts = value if isinstance(value, list) else [value]
    words = [fields.state_word(part) for part in parts if isinstance(part, str) and part]
    if "CONFIGURING" in words and "RUNNING" in words:
        return "CONFIGURING"
    telling = [word for word in words if word != "COMPLETING"]
    return (telling or words or [""])[0]


def _exit(value: object) -> tuple[int | None, int | None]:
    if isinstance(value, dict):
        code = _number(value.get("return_code"))
        signal = value.get("signal")
        number = _number(signal.get("id", signal.get("signal_id"))) if isinstance(signal, dict) else None
        return (None if code is None else int(code)), (int(number) if number else None)
    number = _number(value)
    return (None, None) if number is None else fields.wait_status(int(number))


def _made(
    identity: str, own_id: str, told: dict[str, Any], start: float | None, end: float | None, asked_at: float
) -> JobInfo:
    """The job with its times read by its state and its paths filled in; all text printable but the paths."""
    array = _ARRAY.fullmatch(identity)
    names = Names(
        job_id=own_id or identity,
        job_name=told["name"],
        user=told["user"],
        array=array[1] if array else "",
        task=array[2] if array else "",
        node=first_node(told["nodes"]),
    )
    stdout = output_path(told["stdout"], told["work_dir"], names)
    error_pattern = told["stderr"]
    state = told["state"]
    waits, is_over = state in ("PENDING", "REQUEUED", "REQUEUE_HOLD"), state in fields.ENDED
    told |= {
        "stdout": stdout,
        "stderr": output_path(error_pattern, told["work_dir"], names) if error_pattern else stdout,
        "started_at": None if waits else start,
        "start_estimate": start if waits and start is not None and start > asked_at else None,
        "ended_at": end if is_over else None,
        "ends_at": None if is_over or waits or end is None or end > asked_at + 300 * 86400 else end,
        "exit_code": told["exit_code"] if is_over or told["exit_code"] else None,
    }
    for name in ("name", "user", "reason", "nodes", "dependency"):
        told[name] = printable(told[name], 300)
    sources = {name: "squeue" for name, value in told.items() if value not in (None, "")}
    if told["work_dir"]:
        sources["stdout"] = "squeue"  # also of one that goes nowhere: that is known
    return JobInfo(id=identity, asked_at=asked_at, sources=sources, **told)


def array_master(job: str) -> str:
    """The id that names all of an array or of a het job.

    >>> array_master("12_3"), array_master("12+1"), array_master("12")
    ('12', '12', '12')
    """
    return re.split(r"[_+]", job, maxsplit=1)[0]


def with_source(job: JobInfo, source: str) -> JobInfo:
    """`job` with `source` named for all that it says."""
    return replace(job, sources=dict.fromkeys(job.sources, source))


def leaders(jobs: Sequence[JobInfo]) -> list[JobInfo]:
    """The jobs without the later components of het jobs: one script writes for all of them.

    >>> [job.id for job in leaders([JobInfo("9+0", "RUNNING"), JobInfo("9+1", "RUNNING"), JobInfo("4", "RUNNING")])]
    ['9+0', '4']
    """
    return [job for job in jobs if "+" not in job.id or job.id.endswith("+0")]


def with_all_parts(jobs: Sequence[JobInfo]) -> list[JobInfo]:
    """The jobs, the first component of each het job on the nodes and with the GPUs of all of them.

    >>> parts = [JobInfo("9+0", "RUNNING", nodes="a", gpus=4), JobInfo("9+1", "RUNNING", nodes="b", gpus=8)]
    >>> [(job.id, job.nodes, job.gpus) for job in with_all_parts(parts)]
    [('9+0', 'a,b', 12), ('9+1', 'b', 8)]
    """
    parts: dict[str, list[JobInfo]] = {}
    for job in jobs:
        if "+" in job.id:
            parts.setdefault(array_master(job.id), []).append(job)
    return [_of_parts(job, parts[array_master(job.id)]) if job.id.endswith("+0") else job for job in jobs]


def _of_parts(job: JobInfo, parts: Sequence[JobInfo]) -> JobInfo:
    nodes = ",".join(dict.fromkeys(part.nodes for part in parts if part.nodes))
    gpus = [part.gpus for part in parts if part.gpus is not None]
    return replace(job, nodes=printable(nodes, 300), gpus=sum(gpus) if gpus else None)
