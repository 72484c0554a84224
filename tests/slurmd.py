"""A real single-node Slurm for the tests: munge, MariaDB, slurmdbd, slurmctld and slurmd in a directory of their own.

Nothing of the machine's own Slurm is touched: own ports, own sockets, own key, found by `SLURM_CONF` alone. Needs root
and the programs of `PACKAGES`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PACKAGES = ("slurm-wlm", "slurmdbd", "munge", "mariadb-server")
_PROGRAMS = ("munged", "munge", "slurmctld", "slurmd", "slurmdbd", "mariadbd", "mariadb-install-db", "sbatch", "sacct")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

_SLURM_CONF = """\
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/slurmd.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
{accounting}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,requeue_delay=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=1
MinJobAge={min_job_age}
EpilogMsgTime=1
{nodes}
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
{more}
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=64 RealMemory=4000 State=UNKNOWN"
_DBD_CONF = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
_SQL_SETUP = """\
CREATE DATABASE slurm_acct_db;
CREATE USER 'slurm'@'%' IDENTIFIED BY 'slurm';
GRANT ALL ON slurm_acct_db.* TO 'slurm'@'%';
FLUSH PRIVILEGES;
"""


def missing() -> str:
    """What keeps a Slurm from being started here; "" when nothing does."""
    absent = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"{', '.join(absent)} not installed (apt-get install --no-install-recommends {' '.join(PACKAGES)})"
    return "" if os.geteuid() == 0 else "starting a Slurm needs root"


class Cluster:
    """A running Slurm below `folder`. `with_dbd` False: there is no accounting, and sacct does not answer.

    `nodes`: their names, all on this machine; `more`: further lines of slurm.conf, of which the last one counts.
    """

    def __init__(
        self,
        folder: Path,
        *,
        with_dbd: bool = True,
        min_job_age_s: int = 3600,  # a slow machine looks late
        nodes: Sequence[str] = (),
        more: str = "",
    ) -> None:
        self.folder = folder
        self.with_dbd = with_dbd
        self.min_job_age_s = min_job_age_s
        self.host = socket.gethostname().partition(".")[0]
        self.nodes = tuple(nodes) or (self.host,)
        self.more = more
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def environ(self) -> dict[str, str]:
        """What a client needs to find this cluster."""
        return {**os.environ, "PATH": _PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self) -> None:
        """Starts everything and waits until jobs can be submitted. Raises RuntimeError with what did not come up."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        (self.folder / "ctld").mkdir(exist_ok=True)
        self._start_munge()
        ctld_port, dbd_port, sql_port, *node_ports = _free_ports(3 + len(self.nodes))
        ports = {"ctld_port": ctld_port, "dbd_port": dbd_port, "sql_port": sql_port}
        lines = (
            _NODE.format(name=name, host=self.host, port=port)
            for name, port in zip(self.nodes, node_ports, strict=True)
        )
        accounting = "AccountingStorageType=accounting_storage/none"
        if self.with_dbd:
            accounting = (
                "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n"
                f"AccountingStoragePort={ports['dbd_port']}\nAccountingStoragePass={self.folder}/munge.socket"
            )
            self._start_accounting(ports)
        values = {"host": self.host, "folder": self.folder, "accounting": accounting, "more": self.more, **ports}
        values |= {"nodes": "\n".join(lines), "min_job_age": self.min_job_age_s}
        (self.folder / "slurm.conf").write_text(_SLURM_CONF.format(**values), encoding="utf-8")
        if self.with_dbd:
            self._wait("slurmdbd", lambda: self.call("sacctmgr", "-i", "add", "cluster", "t", check=False) == 0)
        self._spawn("slurmctld", "-D")
        for name in self.nodes:
            self._spawn("slurmd", "-D", "-N", name)
        self._wait("slurmctld and slurmd", self._are_idle)

    def _are_idle(self) -> bool:
        states = self.say("sinfo", "-h", "-N", "-p", "debug", "-o", "%T", check=False).split()
        return states == ["idle"] * len(self.nodes)

    def stop(self) -> None:
        """Ends everything that was started, jobs first."""
        with suppress(subprocess.TimeoutExpired, RuntimeError):
            self.call("scancel", "-u", "root", check=False)
            self._wait("the end of all jobs", lambda: not self.say("squeue", "-h", check=False).strip(), 15.0)
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
        for pid in self._left():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _left(self) -> list[int]:
        """Processes that daemons of this cluster left behind: their environment names its configuration."""
        mark = f"SLURM_CONF={self.folder / 'slurm.conf'}\0".encode()
        found = []
        for place in Path("/proc").iterdir():
            if place.name.isdigit() and int(place.name) != os.getpid():
                with suppress(OSError):
                    if mark in (place / "environ").read_bytes() + b"\0":
                        found.append(int(place.name))
        return found

    def say(self, *command: str, check: bool = True, cwd: Path | None = None) -> str:
        """What `command` prints."""
        done = subprocess.run(
            command, env=self.environ, cwd=cwd, capture_output=True, text=True, timeout=30, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def call(self, *command: str, check: bool = True) -> int:
        """The exit status of `command`."""
        done = subprocess.run(command, env=self.environ, capture_output=True, timeout=30, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode()}")
        return done.returncode

    def submit(self, script: str, *options: str, cwd: Path) -> str:
        """Submits `script` (the lines after the shebang) and gives the job's id."""
        cwd.mkdir(parents=True, exist_ok=True)
        path = cwd / "job.sh"
        path.write_text(f"#!/bin/bash\n{script}\n", encoding="utf-8")
        return self.say("sbatch", "--parsable", *options, str(path), cwd=cwd).strip().partition(";")[0]

    def state(self, job: str) -> str:
        """The state that scontrol gives, "" when it does not know the job."""
        said = self.say("scontrol", "show", "job", "-o", job, check=False)
        return said.partition("JobState=")[2].partition(" ")[0]

    def wait_state(self, job: str, *states: str, timeout_s: float = 180.0) -> str:
        """Waits until `job` is in one of `states`."""
        self._wait(f"job {job} in {states}", lambda: self.state(job) in states, timeout_s)
        return self.state(job)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self._spawn(
            "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={key}",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
            f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip
        socket_path = f"--socket={self.folder}/munge.socket"
        self._wait("munged", lambda: self.call("munge", "-n", socket_path, check=False) == 0)

    def _start_accounting(self, ports: Mapping[str, int]) -> None:
        data = self.folder / "sql"
        setup = self.folder / "setup.sql"
        setup.write_text(_SQL_SETUP, encoding="utf-8")
        self.call(
            "mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )  # fmt: skip
        self._spawn(
            "mariadbd", "--no-defaults", f"--datadir={data}", "--user=root", f"--port={ports['sql_port']}",
            "--bind-address=127.0.0.1", f"--socket={self.folder}/sql.socket", f"--pid-file={self.folder}/sql.pid",
            f"--init-file={setup}", "--skip-name-resolve", "--innodb-buffer-pool-size=64M",
            "--innodb-flush-log-at-trx-commit=0",
        )  # fmt: skip
        conf = self.folder / "slurmdbd.conf"
        conf.write_text(_DBD_CONF.format(folder=self.folder, **ports), encoding="utf-8")
        conf.chmod(0o600)
        (self.folder / "slurm.conf").write_text("", encoding="utf-8")
        self._wait("mariadbd", lambda: _answers(ports["sql_port"]))
        self._spawn("slurmdbd", "-D")

    def _spawn(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.out").open("wb") as out:
            self._processes.append(
                subprocess.Popen(command, env=self.environ, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder)
            )

    def _wait(self, what: str, is_done: Callable[[], bool], timeout_s: float = 180.0) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for process in self._processes:
                if process.poll() is not None:
                    raise RuntimeError(f"{process.args!r} ended with {process.returncode}: see {self.folder}")
            with suppress(subprocess.TimeoutExpired):
                if is_done():
                    return
            time.sleep(0.1)
        raise RuntimeError(f"{what} did not come up within {timeout_s:.0f} s: see the logs in {self.folder}")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
