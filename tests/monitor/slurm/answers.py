"""Answers of Slurm's commands, written by hand after the manuals of the versions they stand for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from trainmon.monitor.slurm import sacct, squeue
from trainmon.monitor.slurm.runner import NOT_FOUND, Answer

NOW = 1_800_000_000.0


class Scripted:
    """A runner that answers by the program's name; `asked` keeps the words without their environment."""

    def __init__(self, **programs: Callable[[list[str]], Answer]) -> None:
        self.programs = programs
        self.asked: list[list[str]] = []

    def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
        words = list(argv)
        while words[0] == "env" or "=" in words[0]:
            words.pop(0)
        self.asked.append(words)
        answer = self.programs.get(words[0])
        return answer(words) if answer is not None else Answer(NOT_FOUND, stderr=f"env: {words[0]}: not found")


def version(text: str, then: Callable[[list[str]], Answer]) -> Callable[[list[str]], Answer]:
    return lambda words: Answer(0, text.encode()) if "--version" in words else then(words)


def me(name: str = "ann") -> Callable[[list[str]], Answer]:
    return lambda words: Answer(0, f"{name}\n".encode())


def row(without: Sequence[str] = (), **told: str) -> bytes:
    """A line of ``squeue -O`` with fields of fixed width."""
    usual = {
        "jobarrayid": "12",
        "jobid": "12",
        "username": "ann",
        "state": "RUNNING",
        "reason": "None",
        "exit_code": "0",
        "restartcnt": "0",
        "submittime": "2027-01-15T07:00:00",
        "starttime": "2027-01-15T07:30:00",
        "endtime": "2027-01-15T09:30:00",
        "nodelist": "gpu[003-004]",
        "tres": "cpu=16,node=2,gres/gpu=16",
        "dependency": "(null)",
        "workdir": "/w/run",
        "stdout": "/w/run/%x-%j.out",
        "stderr": "/w/run/%x-%j.out",
        "command": "/w/run/job.sh",
        "name": "pre train",
    } | told
    widths = {name: width for name, width in squeue.WIDTHS.items() if name not in without}
    return b"".join(usual[name].encode()[:width].ljust(width) for name, width in widths.items()) + b"\n"


def text_form(*rows: bytes, lacks: str = "") -> Callable[[list[str]], Answer]:
    """squeue of a version that has no JSON, and lacks a field perhaps."""

    def answer(words: list[str]) -> Answer:
        if "--json" in words:
            return Answer(1, stderr="squeue: unrecognized option '--json'")
        if lacks and f"{lacks}:" in words[words.index("-O") + 1]:
            return Answer(1, stderr=f"squeue: error: Invalid job format specification: {lacks}")
        return Answer(0, b"".join(rows))

    return answer


def number(value: float | None, *, infinite: bool = False) -> dict[str, Any]:
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


def entry(**told: Any) -> dict[str, Any]:
    """A job as ``squeue --json`` gives it since 23.02: states in lists, numbers with a word on whether they are set."""
    return {
        "job_id": 12,
        "job_state": ["RUNNING"],
        "name": "pre train",
        "user_name": "ann",
        "state_reason": "None",
        "nodes": "gpu[003-004]",
        "array_job_id": number(0),
        "array_task_id": number(None),
        "array_task_string": "",
        "het_job_id": number(0),
        "het_job_offset": number(0),
        "submit_time": number(1_799_996_400),
        "start_time": number(1_799_998_200),
        "end_time": number(1_800_005_400),
        "exit_code": {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(None), "name": ""}},
        "standard_output": "/w/run/%x-%j.out",
        "standard_error": "",
        "current_working_directory": "/w/run",
        "command": "/w/run/job.sh",
        "restart_cnt": 0,
        "dependency": "",
        "tres_alloc_str": "cpu=16,node=2,gres/gpu=16,gres/gpu:a100=16",
    } | told


def json_form(*entries: dict[str, Any]) -> Callable[[list[str]], Answer]:
    data = json.dumps({"meta": {}, "jobs": list(entries), "errors": [], "warnings": []}).encode()
    return lambda words: Answer(0, data)


def accounts(*lines: dict[str, str], lacks: str = "") -> Callable[[list[str]], Answer]:
    """sacct with the fields it is asked for."""

    def answer(words: list[str]) -> Answer:
        names = words[words.index("-o") + 1].split(",")
        if lacks in names:
            return Answer(1, stderr=f'sacct: error: Invalid field requested: "{lacks}"')
        rows = [sacct.DELIMITER.join(line.get(name, "") for name in names) for line in lines]
        return Answer(0, ("\n".join(rows) + "\n").encode())

    return answer
