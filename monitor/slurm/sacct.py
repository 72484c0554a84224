"""What sacct says of jobs that squeue no longer knows, and of a job's earlier starts.

The text form serves every version: ``--json`` gives neither exit codes (22.05 says SUCCESS of any) nor paths that the
text lacks. The fields are parted by a byte that no path or name is likely to hold, and the job's name comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from trainmon.monitor.slurm import fields
from trainmon.monitor.slurm.paths import Names, first_node, output_path
from trainmon.monitor.slurm.squeue import is_id, with_all_parts
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.text import printable

DELIMITER: Final = "\x1f"
FIELDS: Final = (
    "JobID", "JobIDRaw", "User", "State", "ExitCode", "Submit", "Start", "End", "Timelimit", "NodeList", "AllocTRES",
    "WorkDir", "Reason", "StdOut", "StdErr", "SubmitLine", "JobName",
)  # fmt: skip
_SINCE: Final = {"stdout": (24, 5), "stderr": (24, 5), "submitline": (21, 8)}
_NEXT: Final = lazy(rf"\n(?=[\d_+\[\],:%.-]+{DELIMITER})")
_WAITED: Final = frozenset(("Dependency", "BeginTime", "Priority", "Resources"))
# What a job-completion file (``sacct -c``, where there is no slurmdbd) can tell.
COMPLETION_FIELDS: Final = ("JobID", "State", "Start", "End", "Timelimit", "NodeList", "JobName")


def command(ids: Sequence[str], without: Iterable[str] = (), *, from_completion: bool = False) -> list[str]:
    """The words that ask for `ids`, each start of a job that was requeued on its own line."""
    chosen = asked_fields(without, from_completion=from_completion)
    ways = ["-c"] if from_completion else ["-X", "-D"]
    return ["sacct", *ways, "-n", "-P", f"--delimiter={DELIMITER}", "-j", ",".join(ids), "-o", ",".join(chosen)]


def history_command(user: str, name: str, since: str, without: Iterable[str] = ()) -> list[str]:
    """The words that ask for the user's jobs of one name since a day: the earlier jobs of a chain."""
    ways = ["-X", "-D", "-n", "-P", f"--delimiter={DELIMITER}", f"--user={user}", f"--name={name}"]
    return ["sacct", *ways, f"--starttime={since}", "-o", ",".join(asked_fields(without))]


def recent_command(user: str, since: str, without: Iterable[str] = ()) -> list[str]:
    """The words that ask for all of the user's jobs since a moment, by the clock that `plainly` sets."""
    ways = ["-X", "-D", "-n", "-P", f"--delimiter={DELIMITER}", f"--user={user}"]
    return ["sacct", *ways, f"--starttime={since}", "-o", ",".join(asked_fields(without))]


def asked_fields(without: Iterable[str] = (), *, from_completion: bool = False) -> tuple[str, ...]:
    """The fields that are asked for, in order; `without` those that this version does not have (in any case)."""
    left_out = {name.lower() for name in without}
    return tuple(name for name in (COMPLETION_FIELDS if from_completion else FIELDS) if name.lower() not in left_out)


def lacking(version: tuple[int, int]) -> set[str]:
    """The fields, in lower case, that this version does not have.

    >>> sorted(lacking((22, 5))), lacking((24, 5))
    (['stderr', 'stdout'], set())
    """
    return {name for name, since in _SINCE.items() if version < since}


def parse(data: bytes, names: Sequence[str], asked_at: float) -> dict[str, list[JobInfo]]:
    """Job -> its starts, oldest first. A line that begins no record is the rest of a name, or of a command line."""
    found: dict[str, list[JobInfo]] = {}
    for record in _NEXT.split(data.decode("utf-8", "surrogateescape")):
        parts = record.removesuffix("\n").split(DELIMITER)
        if len(parts) < len(names) or not is_id(parts[0]):
            continue
        row = dict(zip(names, [*parts[: len(names) - 1], DELIMITER.join(parts[len(names) - 1 :])], strict=True))
        found.setdefault(parts[0], []).append(_job(row, asked_at))
    known = {job: _in_order(starts) for job, starts in found.items()}
    newest = with_all_parts([starts[-1] for starts in known.values()])
    return {job.id: [*known[job.id][:-1], job] for job in newest}


def _in_order(starts: list[JobInfo]) -> list[JobInfo]:
    """The starts of the newest job of this number: numbers are used again after some years."""
    newest = max((job.submitted_at or 0.0 for job in starts), default=0.0)
    known = [job for job in starts if (job.submitted_at or 0.0) >= newest - 30 * 86400]
    return sorted(known, key=lambda job: (job.started_at is None, job.started_at or 0.0, job.ended_at is None))


def _job(row: Mapping[str, str], asked_at: float) -> JobInfo:
    state = fields.state_word(row.get("State", ""))
    code, signal = fields.exit_codes(row.get("ExitCode", ""))
    nodes = fields.word(row.get("NodeList", ""))
    start, limit = fields.moment(row.get("Start", "")), fields.span_s(row.get("Timelimit", ""))
    own = row.get("JobIDRaw", "").strip() or row["JobID"]
    array, _, task = row["JobID"].partition("_") if "_" in row["JobID"] else ("", "", "")
    names = Names(own, row.get("JobName", ""), row.get("User", ""), array, task, first_node(nodes))
    work_dir = fields.word(row.get("WorkDir", ""))
    stdout, stderr = fields.word(row.get("StdOut", "")), fields.word(row.get("StdErr", ""))
    if not stdout:  # before 24.05
        stdout, stderr = fields.outputs(row.get("SubmitLine", ""))
    is_over = state in fields.ENDED or state in ("REQUEUED", "RESIZING")
    told: dict[str, Any] = {
        "state": state,
        "name": printable(row.get("JobName", ""), 300),
        "user": printable(row.get("User", ""), 100),
        "reason": printable(_reason(row, has_started=start is not None), 300),
        "dependency": printable(fields.dependency(row.get("SubmitLine", "")), 300),
        "nodes": printable(nodes, 300),
        "submitted_at": fields.moment(row.get("Submit", "")),
        "started_at": start,
        "ended_at": fields.moment(row.get("End", "")) if is_over else None,
        "ends_at": start + limit if start is not None and limit is not None and not is_over else None,
        "exit_code": code if is_over else None,
        "signal": signal,
        # What is not said is not guessed here: the default name may not be this job's (see `guessed_output`).
        "stdout": output_path(stdout, work_dir, names) if stdout else "",
        "stderr": output_path(stderr, work_dir, names) if stderr else "",
        "work_dir": work_dir,
        "gpus": fields.gpus(row.get("AllocTRES", "")),
    }
    sources = {
        name: "sacct" for name, value in told.items() if value not in (None, "") or (name == "stdout" and stdout)
    }
    return JobInfo(id=row["JobID"], asked_at=asked_at, sources=sources, **told)


def _reason(row: Mapping[str, str], *, has_started: bool) -> str:
    """Who cancelled, which sacct writes behind the state, or the reason; not why a job waited that has since begun."""
    _, _, by = row.get("State", "").partition(" by ")
    if by:
        return f"by user {by}"
    reason = fields.word(row.get("Reason", ""))
    return "" if has_started and reason in _WAITED else reason


def guessed_output(job: JobInfo) -> str:
    """Where the job wrote if its script named no file: sacct knows the work directory alone before 24.05."""
    array, _, task = job.id.partition("_")
    names = Names(job.id, job.name, job.user, array if task else "", task, first_node(job.nodes))
    return output_path("", job.work_dir, names)
