"""What Slurm is asked: one squeue call a round for all runs together, sacct once for what it no longer knows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import Final

from trainmon.monitor.slurm import fields, sacct, squeue
from trainmon.monitor.slurm.runner import NOT_FOUND, TIMED_OUT, Answer, LocalRunner, Runner, plainly
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.clock import Clock
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

ROUND_S: Final = 60.0
TIMEOUT_S: Final = 10.0
# JSON of a version that cannot filter holds every job of the cluster: from this size on the text form is kinder.
_LARGE_JSON: Final = 4 << 20
_MOST_IDS: Final = 200
_MOST_WANTED: Final = 5000
_ASKS: Final = 3  # how often accounting is asked for a job that it does not know (it may lag behind)
_BACK_S: Final = 14 * 86400.0
_DAY_S: Final = 86400.0
_MOST_RECENT: Final = 100  # of the jobs that ended within a day
_PLAIN = lazy(r"[\w.@-]+")
_NO_SUCH_JOB: Final = "Invalid job id"


@dataclass(frozen=True, slots=True)
class Board:
    """What was said last. `jobs`: by id; `starts`: id -> all starts of a job that was requeued, oldest first.

    `problem`: one line, "" when all is well; `is_there` False: there is no Slurm here. `answered_at`: None before the
    first answer.
    """

    jobs: dict[str, JobInfo] = field(default_factory=dict)
    starts: dict[str, tuple[JobInfo, ...]] = field(default_factory=dict)
    user: str = ""
    problem: str = ""
    is_there: bool = True
    answered_at: float | None = None
    rounds: int = 0

    def named(self, job_id: str) -> list[JobInfo]:
        """The jobs that `job_id` means: one, all tasks of an array, all parts of a het job."""
        if job_id in self.jobs:
            return [self.jobs[job_id]]
        return [job for job in self.jobs.values() if squeue.array_master(job.id) == job_id]


class Scheduler:
    """Asks Slurm through `runner`, in the thread of whoever calls `look`."""

    def __init__(
        self, clock: Clock, runner: Runner | None = None, *, timeout_s: float = TIMEOUT_S, host: str = ""
    ) -> None:
        self._clock = clock
        self._runner = runner or LocalRunner()
        self._timeout_s = timeout_s
        self._host = host  # "" for this machine
        self._lock = threading.Lock()
        self._wanted: dict[str, int] = {}  # id -> how often accounting was asked for it in vain
        self._mine = False
        self._version: tuple[int, int] | None = None
        self._use_json: bool | None = None
        self._without: set[str] = set()
        self._sacct_without: set[str] = set()
        self._sacct_way: str = "accounting"
        self._history_of: dict[str, int] = {}
        self._looked_back: set[tuple[str, str]] = set()
        self._asked_recent = False
        self._unheard = ""  # why accounting did not answer the last time
        self._board = Board()

    # -- what the owner sees -----------------------------------------------------------------------------------

    @property
    def board(self) -> Board:
        """What was said last; the same object until something new was said."""
        return self._board

    def want(self, ids: Iterable[str]) -> bool:
        """From now on these jobs are asked for too; whether any of them is new."""
        with self._lock:
            fresh = [one for one in ids if squeue.is_id(one) and one not in self._wanted]
            for one in fresh[: max(_MOST_WANTED - len(self._wanted), 0)]:
                self._wanted[one] = 0
        return bool(fresh)

    def want_mine(self) -> None:
        """From now on all of the user's jobs are asked for."""
        self._mine = True

    def look_back(self, job: JobInfo) -> None:
        """Asks once for the earlier jobs of the same user and name: squeue has long forgotten a chain's first jobs."""
        key = (job.user, job.name)
        is_plain = _PLAIN.fullmatch(job.user) is not None and job.name and not set(job.name) & set(",\\\x1f")
        if key in self._looked_back or not is_plain or self._sacct_way != "accounting" or not self._board.is_there:
            return
        self._looked_back.add(key)
        now = self._clock.wall()
        day = datetime.fromtimestamp(now - _BACK_S, UTC).strftime("%Y-%m-%d")
        self._add_earlier(sacct.history_command(job.user, job.name, day, self._sacct_without), now)

    def look_back_at_mine(self) -> None:
        """Asks once for the user's jobs of the last day: squeue forgets them some minutes after their end."""
        user = self._board.user
        if self._asked_recent or not _PLAIN.fullmatch(user) or self._sacct_way != "accounting":
            return
        self._asked_recent = True
        now = self._clock.wall()
        since = datetime.fromtimestamp(now - _DAY_S, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        self._add_earlier(sacct.recent_command(user, since, self._sacct_without), now, most=_MOST_RECENT)

    def _add_earlier(self, command: Sequence[str], now: float, most: int | None = None) -> None:
        """Adds what accounting answers of jobs that are not known, the newest `most` of them."""
        answer = self._run(command)
        if not answer.ok:
            return
        jobs, starts = dict(self._board.jobs), dict(self._board.starts)
        found = sacct.parse(answer.stdout, sacct.asked_fields(self._sacct_without), now)
        fresh = sorted((one for one in found if one not in jobs), key=lambda one: found[one][-1].submitted_at or 0.0)
        if most is not None:  # one that accounting takes for running and squeue does not know was lost by both
            fresh = [one for one in fresh if found[one][-1].state in fields.ENDED][-most:]
        chosen = set(fresh)
        for one, history in found.items():
            if one in chosen:
                jobs[one] = history[-1]
            elif one in jobs:
                jobs[one] = self._kept(jobs[one], history[-1])
            if len(history) > 1 and one in jobs and one not in starts:
                starts[one] = tuple(history)
        self._board = replace(self._board, jobs=jobs, starts=starts)

    def learn_output(self, job_id: str, stdout: str) -> None:
        """Where a job wrote of which accounting does not say it."""
        board = self._board
        job = board.jobs.get(job_id)
        if job is not None and not job.stdout:
            known = replace(job, stdout=stdout, stderr=stdout, sources=job.sources | {"stdout": "found beside"})
            self._board = replace(board, jobs=board.jobs | {job_id: known})

    @property
    def is_heard(self) -> bool:
        """Whether the last round was answered, or there is nobody to answer."""
        board = self._board
        return not board.is_there or (board.answered_at is not None and not board.problem and not self._unheard)

    def why_unknown(self, job_id: str) -> str:
        """What to say of a job that is on no board: not that there is none where accounting did not answer."""
        if self._unheard:
            return f"squeue does not know job {job_id} and {self._unheard}; try again, or name the job's log file"
        return f"Slurm knows no job {job_id}; check the number, or name the job's log file"

    def complain(self, problem: str) -> None:
        """Has `problem` shown; what was known stays."""
        self._board = replace(self._board, problem=printable(problem, 300))

    # -- one round ---------------------------------------------------------------------------------------------

    def look(self) -> Board:
        """Asks once for everything that is wanted. Never raises for what a command answers."""
        self._look()
        self._board = replace(self._board, rounds=self._board.rounds + 1)
        return self._board

    def _look(self) -> None:
        if not self._meet():
            return
        with self._lock:
            wanted = dict(self._wanted)
        now = self._clock.wall()
        found = self._ask_squeue(wanted, now)
        if found is None:
            return
        board = self._board
        jobs = {job.id: self._kept(job, board.jobs.get(job.id)) for job in squeue.with_all_parts(found)}
        known = {squeue.array_master(job) for job in jobs} | set(jobs)
        was_alive = {one for one, job in board.jobs.items() if job.state not in fields.ENDED and one not in jobs}
        lost = [one for one in wanted if one not in known and not _is_final(board, one)] + sorted(
            was_alive - set(wanted)
        )
        starts = dict(board.starts)
        self._ask_sacct(lost, jobs, starts, now)
        for one in was_alive - set(jobs):
            jobs[one] = _gone(board.jobs[one], now)
        requeued = [one for one, job in jobs.items() if job.restarts and self._history_of.get(one) != job.restarts]
        self._ask_history(requeued, jobs, starts, now)
        kept = {one: job for one, job in board.jobs.items() if one not in jobs}
        self._board = replace(board, jobs=kept | jobs, starts=starts, problem="", answered_at=now)

    def _meet(self) -> bool:
        """Whether there is a Slurm to ask; finds out which version at the first time."""
        if self._version is not None or not self._board.is_there:
            return self._board.is_there
        answer = self._run(["squeue", "--version"])
        if answer.status == NOT_FOUND:
            words = "name a host that has Slurm (HOST:slurm:me), or the job's log file"
            problem = f"there is no squeue on {self._host or 'this machine'}; {words}"
            self._board = replace(self._board, is_there=False, problem=problem)
            return False
        self._version = squeue.version_of(answer.stdout.decode("utf-8", "replace")) if answer.ok else None
        if self._version is None:
            self._complain("squeue", answer)
            return False
        self._use_json = self._version >= squeue.JSON_SINCE
        self._sacct_without |= sacct.lacking(self._version)
        who = self._runner.run(["id", "-un"], self._timeout_s)
        self._board = replace(self._board, user=who.stdout.decode("utf-8", "replace").strip() if who.ok else "")
        return True

    def _run(self, argv: Sequence[str]) -> Answer:
        return self._runner.run(plainly(argv), self._timeout_s)

    def _complain(self, program: str, answer: Answer) -> None:
        self._board = replace(self._board, problem=self._words_of(program, answer))

    def _words_of(self, program: str, answer: Answer) -> str:
        """What went wrong with a command, in one line."""
        words = answer.stderr.strip().splitlines()
        what = printable(words[-1] if words else f"exit status {answer.status}", 200)
        if answer.status == TIMED_OUT:
            what = f"has not answered within {self._timeout_s:.0f} s"
        return f"{program}: {what.removeprefix(program + ': ')}"

    # -- squeue ------------------------------------------------------------------------------------------------

    def _ask_squeue(self, wanted: dict[str, int], now: float) -> list[JobInfo] | None:
        """The jobs of one call; None when it did not work."""
        for _ in range(len(squeue.WIDTHS) + 2):
            argv = ["squeue", *self._selection(wanted)]
            if self._use_json:
                answer = self._run([*argv, "--json"])
                jobs = self._from_json(answer, now)
                if jobs is not None:
                    return jobs
                if _NO_SUCH_JOB in answer.stderr:
                    return []
                if answer.status == TIMED_OUT:
                    self._complain("squeue", answer)
                    return None
                self._use_json = False
                continue
            answer = self._run([*argv, "-h", "-O", squeue.text_format(self._without)])
            # Some versions complain of a field and still succeed.
            unknown = squeue.unknown_field(answer.stderr)
            if unknown is not None and unknown.lower() in squeue.WIDTHS and unknown.lower() not in self._without:
                self._without.add(unknown.lower())
                continue
            if answer.ok:
                return squeue.parse_text(answer.stdout, now, self._without)
            if _NO_SUCH_JOB in answer.stderr:
                return []
            self._complain("squeue", answer)
            return None
        return None

    def _selection(self, wanted: dict[str, int]) -> list[str]:
        """The words that say which jobs: by user where that covers them all, else by number."""
        ways = ["-a", "-t", "all"]
        alive = [one for one in wanted if not _is_final(self._board, one)]
        owners = {job.user for one in alive for job in self._board.named(one)}
        are_known = all(self._board.named(one) for one in alive)
        if self._mine and self._board.user:
            others = owners - {self._board.user, ""}
            if not others or are_known:
                return [*ways, "-u", ",".join([self._board.user, *sorted(others)])]
        if self._mine and not self._board.user:
            return ways
        if not alive:
            return [*ways, "-u", self._board.user] if self._board.user else ways
        still = [one for one, job in self._board.jobs.items() if job.state not in fields.ENDED]
        return [*ways, "-j", ",".join(_numbers([*alive, *still]))]

    def _from_json(self, answer: Answer, now: float) -> list[JobInfo] | None:
        if not answer.ok:
            return None
        try:
            jobs = squeue.parse_json(answer.stdout, now)
        except (ValueError, RecursionError):
            return None
        filters = self._version is not None and self._version >= squeue.FILTERED_SINCE
        if not filters and len(answer.stdout) > _LARGE_JSON:
            self._use_json = False
        with self._lock:
            wanted = set(_numbers(self._wanted))
        return [
            job
            for job in jobs
            if squeue.array_master(job.id) in wanted or (self._mine and job.user == self._board.user)
        ]

    @staticmethod
    def _kept(job: JobInfo, before: JobInfo | None) -> JobInfo:
        """`job` with what was said before, or by accounting, and is no longer: a dependency that was met."""
        if before is None or not before.dependency or job.dependency:
            return job
        source = {name: told for name, told in before.sources.items() if name == "dependency"}
        return replace(job, dependency=before.dependency, sources=job.sources | source)

    # -- sacct -------------------------------------------------------------------------------------------------

    def _ask_sacct(
        self, lost: Sequence[str], jobs: dict[str, JobInfo], starts: dict[str, tuple[JobInfo, ...]], now: float
    ) -> None:
        """Looks up jobs that squeue does not know (any more)."""
        with self._lock:
            asked = [one for one in lost if self._wanted.get(one, 0) < _ASKS][:_MOST_IDS]
        if not asked:
            return
        found = self._accounting(_numbers(asked), now)
        told = {squeue.array_master(one) for one in found} | set(found)
        for one, history in found.items():
            if one not in jobs:
                jobs[one] = _completed(history[-1], self._board.jobs.get(one))
            if len(history) > 1:
                starts[one] = tuple(history)
        with self._lock:
            for one in asked if not self._unheard else ():
                if one in self._wanted and one not in told:
                    self._wanted[one] += 1

    def _ask_history(
        self, requeued: Sequence[str], jobs: dict[str, JobInfo], starts: dict[str, tuple[JobInfo, ...]], now: float
    ) -> None:
        """Looks up the earlier starts of jobs that were requeued, once a restart."""
        if not requeued:
            return
        found = self._accounting(_numbers(requeued[:_MOST_IDS]), now)
        for one in requeued:
            self._history_of[one] = jobs[one].restarts or 0
            earlier = [job for job in found.get(one, []) if job.ended_at is not None and _is_earlier(job, jobs[one])]
            if earlier:
                starts[one] = (*earlier, jobs[one])

    def _accounting(self, ids: Sequence[str], now: float) -> dict[str, list[JobInfo]]:
        """What sacct knows of `ids`; empty where there is no accounting."""
        self._unheard = ""
        for _ in range(len(sacct.FIELDS)):
            if self._sacct_way == "none":
                return {}
            by_completion = self._sacct_way == "completion"
            names = sacct.asked_fields(self._sacct_without, from_completion=by_completion)
            answer = self._run(sacct.command(ids, self._sacct_without, from_completion=by_completion))
            unknown = squeue.unknown_field(answer.stderr)
            if unknown is not None and unknown.lower() not in self._sacct_without:
                self._sacct_without.add(unknown.lower())
                continue
            if answer.ok and not ("disabled" in answer.stderr and not answer.stdout):
                return sacct.parse(answer.stdout, names, now)
            if answer.status == TIMED_OUT or ("disabled" not in answer.stderr and answer.status != NOT_FOUND):
                self._unheard = self._words_of("sacct", answer)
                return {}
            self._sacct_way = "none" if by_completion or answer.status == NOT_FOUND else "completion"
        return {}


def _numbers(ids: Iterable[str]) -> list[str]:
    """The numbers to ask with: an array's or het job's parts by their master's, each once."""
    return list(dict.fromkeys(squeue.array_master(one) for one in ids))


def _is_final(board: Board, job_id: str) -> bool:
    """Whether nothing more will be said of the job."""
    known = board.named(job_id)
    return bool(known) and all(job.state in fields.ENDED for job in known)


def _is_earlier(start: JobInfo, now: JobInfo) -> bool:
    return now.started_at is None or (start.started_at is not None and start.started_at < now.started_at)


def _gone(job: JobInfo, now: float) -> JobInfo:
    """A job that squeue has forgotten and accounting does not know."""
    return replace(
        job, state="GONE", time_left_s=None, ends_at=None, asked_at=now, sources=job.sources | {"state": "squeue"}
    )


def _completed(job: JobInfo, before: JobInfo | None) -> JobInfo:
    """What sacct said, with the paths that squeue had told before."""
    if before is None:
        return job
    kept = {
        name: getattr(before, name)
        for name in ("stdout", "stderr", "work_dir", "command", "dependency", "restarts", "gpus", "user", "nodes")
        if getattr(job, name) in (None, "") and getattr(before, name) not in (None, "")
    }
    sources = before.sources | job.sources
    return replace(job, **kept, sources=sources)
