"""Runs and their jobs, side by side: one thread that asks Slurm and says which jobs are whose."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Final

from trainmon.monitor.job.process import Process
from trainmon.monitor.slurm.chains import chains
from trainmon.monitor.slurm.fields import ENDED
from trainmon.monitor.slurm.joined import joined, unclear
from trainmon.monitor.slurm.match import Index, KnownRun, match, starts_of
from trainmon.monitor.slurm.runner import Runner
from trainmon.monitor.slurm.sacct import guessed_output
from trainmon.monitor.slurm.scheduler import ROUND_S, Scheduler
from trainmon.monitor.slurm.squeue import array_master, leaders
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.clock import Clock
from trainmon.tails.jobs import JobFiles
from trainmon.tails.target import scheduler_of
from trainmon.tails.text import printable

_FIRST_WAIT_S: Final = 3.0  # a target is waited for so long before the others are read without it
# Runs that were found apart stay apart; a machine without Slurm, or a quick one, is not waited for.
_CHAIN_WAIT_S: Final = 11.0
_SOONEST_S: Final = 5.0  # new jobs are asked for at once, though not more often than this
_LOOKED_BACK: Final = 20  # jobs of one target whose earlier ones are looked up, once each
_MOST_CHAINED: Final = 500  # logs whose jobs are held against each other
_MINE_AGE_S: Final = 7 * 86400.0
_PROCESS_S: Final = 1.0
# A log that was last written so long ago, and that names no job, is not asked about.
_OLD_S: Final = 86400.0


class JobWatch:
    """What schedulers and /proc say of the runs.

    `is_on` False: Slurm is not asked (``--no-slurm``). `is_local` False: the runs' files lie where `runner` runs,
    on `host`.
    `is_file`: whether there is a file. `pid`: the process that the run is (``--pid``). With `start` a thread asks once
    a minute; without it, `look` asks at once. `know` and `jobs_for` may be called from any thread and wait for nobody;
    `jobs_of` and `chained` wait for a first answer.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        runner: Runner | None = None,
        is_on: bool = True,
        pid: int | None = None,
        is_local: bool = True,
        host: str = "",
        is_file: Callable[[str], bool] = os.path.isfile,
    ) -> None:
        self._clock = clock
        self._scheduler = Scheduler(clock, runner, host=host)
        self._is_on = is_on
        self._is_local = is_local
        self._is_file = is_file
        self._process = Process(pid, clock) if pid is not None else None
        self._lock = threading.Lock()
        self._look_lock = threading.Lock()
        self._runs: dict[str, KnownRun] = {}
        self._matched: dict[str, tuple[JobInfo, ...]] = {}
        self._process_jobs: dict[str, JobInfo] = {}
        self._nowhere: dict[str, tuple[str, ...]] = {}  # run -> jobs whose output no file tells
        self._asked_for: set[str] = set()
        self._to_ask: set[str] = set()
        self._answered = threading.Event()
        self._turned_away = False
        self._index: Index | None = None
        self.on_answer: Callable[[], None] = lambda: None  # called when a target that got no answer would get one now
        self._looked = False
        self._stop_event = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    # -- for the session ---------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[str, ...]:
        """One line when Slurm has answered before and does not answer now; a target that names a job has its own."""
        board = self._scheduler.board
        if not board.problem or board.answered_at is None:
            return ()
        return (f"Slurm: {board.problem}; job states are as last heard",)

    def know(self, name: str, paths: Sequence[str], target: str = "") -> None:
        """Makes a run known, or its files; its jobs are looked for in this object's own thread."""
        with self._lock:
            known = self._runs.get(name)
            places = tuple(os.path.normpath(path) for path in paths)
            if known is not None and known.paths == places:
                return
            jobs = known.jobs if known is not None else self._nowhere.get(name) or tuple(ids_of(target))
            run = KnownRun(name, places, is_local=self._is_local, jobs=jobs)
            self._runs[name] = run
        if run.jobs:  # the jobs are known already: there is nothing to find out on the disk
            self._matched[name] = match(run, self._indexed())
        self._wake.set()

    def jobs_for(self, name: str) -> tuple[JobInfo, ...]:
        """Every start of the run's jobs, oldest first, as was said last."""
        process = self._process_jobs.get(name)
        return (process,) if process is not None else self._matched.get(name, ())

    def start(self) -> None:
        """Begins to ask."""
        self._thread = threading.Thread(target=self._work, name="trainmon-jobs", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; does not wait for a command that hangs."""
        self._stop_event.set()
        self._wake.set()

    def look(self, *, again: bool = False) -> None:
        """Matches, and asks before that unless it was asked already, or `again`; in the caller's thread."""
        with self._look_lock:
            self._learn()
            if self._may_ask(again=again):
                self._ask()
            self._match()

    # -- for the search of targets -----------------------------------------------------------------------------

    def jobs_of(self, target: str) -> tuple[Sequence[JobFiles], Sequence[str]]:
        """The runs that ``slurm:ID`` or ``slurm:me`` names, and what cannot be told of it."""
        shown = printable(target, 200)
        if not self._is_on:
            return (), (f"{shown}: Slurm is not asked (--no-slurm); name the job's log file",)
        ids = ids_of(target)
        is_mine = "me" in ids
        if is_mine:
            self._scheduler.want_mine()
        self._scheduler.want(one for one in ids if one != "me")
        if not self._has_asked(ids):
            self._ask_for(ids)
            if not self._has_asked(ids):
                self._turned_away = True  # the thread is still at it: who follows comes again
                return (), ()
        board = self._scheduler.board
        if board.answered_at is None:
            problem = board.problem or "Slurm has not answered"
            hint = "" if ";" in problem else "; is Slurm there? else name the job's log file"
            return (), (f"{shown}: {problem}{hint}",)
        if is_mine:
            with self._look_lock:
                self._scheduler.look_back_at_mine()
        problems: list[str] = []
        jobs: dict[str, JobInfo] = {}
        for one in ids:
            named = self._mine() if one == "me" else board.named(one)
            jobs |= {job.id: job for job in self._led(named)}
            if not named:
                nobody = "you have no jobs, waiting, running or just ended"
                problems.append(f"{shown}: {nobody if one == 'me' else self._scheduler.why_unknown(one)}")
        may_go_on = [job for job in jobs.values() if "_" not in job.id and job.user == board.user]
        may_go_on = [job for job in may_go_on if job.id in ids or job.state not in ENDED]
        for job in may_go_on[:_LOOKED_BACK]:
            with self._look_lock:
                self._scheduler.look_back(job)
        found, silent = self._files(jobs, [job.id for one in ids for job in board.named(one)])
        if is_mine:  # nobody asked by its number for one that has ended and left no trace
            silent = [one for one in silent if one in ids or jobs[one].state not in ENDED]
        problems += [f"{shown}: Slurm does not say where job {one} writes; name its log file" for one in silent]
        return found, problems

    def _led(self, jobs: Sequence[JobInfo]) -> list[JobInfo]:
        """The jobs that write; for a later component of a het job, which was named alone, its first one."""
        others = [self._scheduler.board.named(array_master(job.id)) for job in jobs if "+" in job.id]
        return leaders([*jobs, *(job for parts in others for job in parts)])

    def _ask_for(self, ids: Sequence[str], wait_s: float = _FIRST_WAIT_S) -> None:
        """Has `ids` asked for: by the thread, for which others do not wait long, else here."""
        if self._thread is None:
            with self._look_lock:
                if not self._ask():  # a busy controller gets a second chance: nobody comes again
                    self._ask()
            self._asked_for.update(ids)
            return
        with self._lock:
            self._to_ask.update(ids)
        self._answered.clear()
        self._wake.set()
        self._answered.wait(wait_s)

    def _has_asked(self, ids: Sequence[str]) -> bool:
        board = self._scheduler.board
        is_mine_known = board.answered_at is not None and self._thread is not None
        return all(one in self._asked_for or (is_mine_known if one == "me" else board.named(one)) for one in ids)

    def _mine(self) -> list[JobInfo]:
        board = self._scheduler.board
        now = self._clock.wall()
        return [
            job
            for job in board.jobs.values()
            if job.user == board.user and (job.ended_at is None or now - job.ended_at < _MINE_AGE_S)
        ]

    def _files(self, jobs: dict[str, JobInfo], asked: Sequence[str]) -> tuple[list[JobFiles], list[str]]:
        """The runs of `jobs`, of which `asked` were named, with their chains; ids of those whose output is unknown."""
        board = self._scheduler.board
        found: list[JobFiles] = []
        silent: list[str] = []
        for chain in chains(leaders(list(board.jobs.values()))):
            mine = [job for job in chain if job.id in jobs]
            if not mine:
                continue
            for job in chain:
                self._find_output(job, chain[-1])
            board = self._scheduler.board
            chain = tuple(board.jobs.get(job.id, job) for job in chain)
            starts = starts_of(chain, board)
            outputs = list(dict.fromkeys(map(_output, starts)))
            newest = chain[-1]
            goes_nowhere = not any(map(any, outputs))
            if goes_nowhere and not newest.work_dir:
                silent += [job.id for job in mine]
                continue
            since = next((start.started_at for start in starts if start.started_at is not None), None)
            ids = tuple(job.id for job in chain)
            if goes_nowhere:
                self._nowhere[run_name(newest)] = ids
            said = any(job.id in asked or job.state not in ENDED for job in mine), "stdout" in newest.sources
            found.append(JobFiles(run_name(newest), tuple(outputs), ids, newest.work_dir, since, *said))
        return found, silent

    def _find_output(self, job: JobInfo, newest: JobInfo) -> None:
        """Looks for the output of a job that only accounting knows: as that of its chain's newest, or the default."""
        if job.stdout:
            return
        for path in (_like(newest, job), guessed_output(job)):
            if path and self._is_file(path):
                self._scheduler.learn_output(job.id, path)
                return

    def chained(self, logs: Sequence[Sequence[str]]) -> list[tuple[str, dict[int, int]]]:
        """Which of `logs` (the paths of each) are one run, by the word of the scheduler: its name, and for the place of
        each in `logs` the number of the start that wrote it. Waits for a first answer, as `jobs_of` does."""
        if not self._is_on or not self._scheduler.board.is_there or not 2 <= len(logs) <= _MOST_CHAINED:
            return []
        runs = [
            KnownRun("", tuple(os.path.normpath(path) for path in paths), is_local=self._is_local) for paths in logs
        ]
        for run in runs:
            run.look()
        hints = sorted({"me"}.union(*(run.hints for run in runs)))
        self._scheduler.want_mine()
        self._scheduler.want(one for one in hints if one != "me")
        if any(one not in self._asked_for for one in hints):
            self._ask_for(hints, _CHAIN_WAIT_S)
        if self._scheduler.board.answered_at is None:
            return []
        for job in list(unclear(runs, self._indexed()))[:_LOOKED_BACK]:
            if job.user == self._scheduler.board.user:
                self._find_earlier(job)
        return [(run_name(newest), places) for newest, places in joined(runs, self._indexed())]

    def _find_earlier(self, job: JobInfo) -> None:
        with self._look_lock:
            self._scheduler.look_back(job)
        for chain in chains(leaders(list(self._scheduler.board.jobs.values()))):
            if any(one.id == job.id for one in chain):
                for one in chain:
                    self._find_output(one, chain[-1])

    # -- the thread --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        asked_at, is_late = -ROUND_S, False
        while not self._stop_event.is_set():
            self._wake.clear()
            waits_s = _PROCESS_S if self._process is not None else ROUND_S
            try:
                with self._look_lock:
                    is_new = is_late = self._learn() or bool(self._to_ask) or is_late
                    since_s = self._clock.monotonic() - asked_at
                    if self._is_on and self._scheduler.board.is_there:
                        if since_s >= ROUND_S or (is_new and since_s >= _SOONEST_S):
                            asked_at, is_late = self._clock.monotonic(), False
                            self._round()
                        elif is_new:
                            waits_s = min(waits_s, _SOONEST_S)
                    else:
                        self._round()
                    self._match()
            except Exception as error:  # the top of this thread: what was known stays, and the screen says so
                self._scheduler.complain(f"internal error ({type(error).__name__}: {error}); please report it")
            self._wake.wait(waits_s)

    def _round(self) -> None:
        with self._lock:
            asked, self._to_ask = self._to_ask, set()
        if self._is_on and self._scheduler.board.is_there:
            self._ask()
        self._asked_for |= asked
        self._answered.set()
        if self._turned_away:
            self._turned_away = False
            self.on_answer()

    def _ask(self) -> bool:
        """Asks once; whether there was an answer."""
        self._looked = True
        self._scheduler.want_mine()
        self._scheduler.look()
        return self._scheduler.is_heard

    def _may_ask(self, *, again: bool) -> bool:
        """Whether asking can tell anything of these runs."""
        if not self._is_on or not self._scheduler.board.is_there or (self._looked and not again):
            return False
        with self._lock:
            runs = list(self._runs.values())
        now = self._clock.wall()
        return any(
            run.hints or not self._is_local or (run.written_at is not None and now - run.written_at < _OLD_S)
            for run in runs
        )

    def _learn(self) -> bool:
        """Reads what the runs' files say of their jobs; whether that asks for jobs that were not asked for."""
        with self._lock:
            runs = list(self._runs.values())
        hints: set[str] = set()
        for run in runs:
            run.look()
            hints |= run.hints - {"me"}
        return self._scheduler.want(hints) if self._is_on else False

    def _indexed(self) -> Index:
        """The board as it is now, indexed once."""
        board, index = self._scheduler.board, self._index
        if index is None or index.board is not board:
            self._index = index = Index(board)
        return index

    def _match(self) -> None:
        with self._lock:
            runs = list(self._runs.values())
        board = self._scheduler.board
        if self._is_on and board.answered_at is not None:
            index = self._indexed()
            self._matched = {run.name: match(run, index) for run in runs}
        if self._process is not None and self._process.is_there:
            job = self._process.look()
            writes = [run.name for run in runs if job.stdout and job.stdout in run.real | set(run.paths)]
            mine = writes or list(self._process_jobs) or ([runs[0].name] if len(runs) == 1 else [])
            self._process_jobs = dict.fromkeys(mine, job)


def ids_of(target: str) -> list[str]:
    """The ids in ``slurm:12,13_4``, ``slurm:me`` or ``host:slurm:12``; none of another target.

    >>> ids_of("slurm:12,13_4"), ids_of("cluster:slurm:me"), ids_of("logs/train.log")
    (['12', '13_4'], ['me'], [])
    """
    try:
        named = scheduler_of(target)
    except ValueError:
        named = None
    if named is None:
        return []
    text = named[1].removeprefix("slurm:")
    return [text] if "[" in text else [one for one in text.split(",") if one]


def run_name(job: JobInfo) -> str:
    """What a run is called that was named by its job.

    >>> run_name(JobInfo("12_3", "RUNNING", "pre/train")), run_name(JobInfo("9+0", "RUNNING"))
    ('pre_train-12_3', 'job-9')
    """
    name = job.name.replace("/", "_").strip() or "job"
    return f"{name[:60]}-{job.id.removesuffix('+0')}"


def _output(job: JobInfo) -> tuple[str, str]:
    """(stdout, stderr) of a start."""
    return job.stdout, job.stderr if job.stderr != job.stdout else ""


def _like(newest: JobInfo, job: JobInfo) -> str:
    """Where `job` wrote if it wrote as the newest of its chain: its own number in place of that one's.

    >>> _like(JobInfo("20", "RUNNING", stdout="/w/train-20.log"), JobInfo("18", "TIMEOUT"))
    '/w/train-18.log'
    """
    folder, name = os.path.split(newest.stdout)
    parts = re.split(rf"(?<!\d){newest.id}(?!\d)", name)
    return os.path.join(folder, job.id.join(parts)) if len(parts) > 1 else ""
