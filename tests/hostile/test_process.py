"""Signals, closed streams, full disks, missing homes: the program says what it cannot do, and does the rest."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT, lacking

TRAINMON = (sys.executable, "-m", "trainmon")
GOOD = b"".join(b'{"step": %d, "loss": %.3f, "grad_norm": 1.0}\n' % (n, 3 - n / 1000) for n in range(1, 201))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(GOOD)
    return folder


def environment(home: Path | None) -> dict[str, str]:
    """The environment with `home`, and nothing that says where else this user's files are."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TRAINMON_CACHE"))}
    kept.pop("HOME", None)
    return {**kept, "PYTHONPATH": str(ROOT)} | ({"HOME": str(home)} if home is not None else {})


def run(
    logs: Path, home: Path | None, *words: str, limits: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TRAINMON, *words],
        cwd=logs,
        env=environment(home),
        preexec_fn=limits,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def is_judged(made: subprocess.CompletedProcess[str]) -> None:
    """It came to its verdict, and said what else was wrong in single lines."""
    assert made.returncode == 0, made
    assert "PASS" in made.stdout
    assert "Traceback" not in made.stderr
    assert "internal error" not in made.stderr
    assert len(made.stderr.splitlines()) <= 3


# -- where nothing can be kept -------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(point: Path, options: str) -> Iterator[Path]:
    """A file system of its own at `point`."""
    point.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(point)], capture_output=True, check=False
    )
    if made.returncode:
        lacking(f"no file system can be mounted: {made.stderr.decode().strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


@pytest.mark.requires("root")
def test_a_home_on_a_full_disk(logs: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "size=64k") as home:
        with contextlib.suppress(OSError), (home / "filler").open("wb") as filler:
            filler.write(bytes(1 << 20))
        made = run(logs, home, "check", "good.jsonl")
        is_judged(made)
        assert "history" in made.stderr
        (home / "filler").unlink()
        is_judged(run(logs, home, "check", "good.jsonl"))
        with contextlib.suppress(OSError), (home / "filler").open("wb") as filler:
            filler.write(bytes(1 << 20))
        is_judged(run(logs, home, "check", "good.jsonl"))
        kept = json.loads(run(logs, home, "history", "--json").stdout)
        assert len(kept["runs"]) == 1, "what was kept before the disk was full is still there"


@pytest.mark.requires("root")
def test_a_home_that_is_read_only(logs: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "size=64k,ro") as home:
        made = run(logs, home, "check", "good.jsonl")
        is_judged(made)
        assert "history" in made.stderr
        assert run(logs, home, "watch", "--headless", "--until-idle", "0.5", "good.jsonl").returncode == 0


@pytest.mark.requires("root")
def test_a_history_in_a_home_that_became_read_only_is_still_told(logs: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", "size=64k") as home:
        is_judged(run(logs, home, "check", "good.jsonl"))
        subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
        assert "no history is kept" in run(logs, home, "check", "good.jsonl").stderr
        made = run(logs, home, "history", "--json")
        assert [one["name"] for one in json.loads(made.stdout)["runs"]] == ["good.jsonl"]
        assert made.stderr == ""
    with small_disk(tmp_path / "new", "size=64k,ro") as home:
        assert run(logs, home, "history").stderr == "trainmon: no run was judged before\n"


def test_files_that_may_not_grow(logs: Path, tmp_path: Path) -> None:
    made = run(
        logs, tmp_path, "check", "good.jsonl", limits=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
    )
    is_judged(made)
    assert "history" in made.stderr


@pytest.mark.parametrize("home", [None, "", "/nonexistent/home"])
def test_no_home(logs: Path, home: str | None) -> None:
    before = sorted(logs.rglob("*"))
    # A user whom no one knows: neither the environment nor the list of users says where home is.
    program = (
        "import os, pwd, sys\n"
        "def unknown(*_): raise KeyError('no such user')\n"
        "pwd.getpwuid = pwd.getpwnam = unknown\n"
        "sys.argv[0] = 'trainmon'\nfrom trainmon.cli import main\nmain()\n"
    )
    chosen = environment(None) | ({"HOME": home} if home is not None else {})
    for words in (("check", "good.jsonl"), ("watch", "--headless", "--until-idle", "0.5", "good.jsonl"), ("history",)):
        made = subprocess.run(
            [sys.executable, "-c", program, *words], cwd=logs, env=chosen, capture_output=True, text=True, check=False
        )
        if words[0] == "check" and home != "/nonexistent/home":
            is_judged(made)
        assert made.returncode in (0, 2), made
        assert "internal error" not in made.stderr
    assert sorted(logs.rglob("*")) == before, "nothing is left among the logs"


@pytest.mark.parametrize("words", [("check",), ("watch", "--headless", "--until-idle", "0.5")], ids=" ".join)
def test_a_current_directory_that_was_removed(logs: Path, tmp_path: Path, words: Sequence[str]) -> None:
    """A job's scratch folder, say: what is named from the root is judged, what is not is said not to be there."""
    script = 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"'
    gone = tmp_path / "gone"
    for target, is_there in ((logs / "good.jsonl", True), ("good.jsonl", False)):
        made = subprocess.run(
            ["sh", "-c", script, str(gone), sys.executable, "-m", "trainmon", *words, str(target)],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == (0 if is_there else 2), made
        assert "standard output" not in made.stderr
        assert len(made.stderr.splitlines()) == (0 if is_there else 1), made.stderr
        assert is_there or str(gone / "good.jsonl") in made.stderr


@pytest.mark.parametrize(
    "words", [("check", "good.jsonl"), ("check", "none.jsonl"), ("check", "--nonsense")], ids=" ".join
)
def test_problems_that_cannot_be_said_are_no_verdict(logs: Path, words: Sequence[str]) -> None:
    """Status 1 would mean a FAIL; what there is to say (that no history can be kept) goes to a full disk."""
    with Path("/dev/full").open("w") as full:
        chosen = environment(logs) | {"XDG_DATA_HOME": "/dev/null"}
        command = [*TRAINMON, *words]
        made = subprocess.run(command, cwd=logs, env=chosen, stdout=subprocess.DEVNULL, stderr=full, check=False)
    assert made.returncode == 2


# -- limits --------------------------------------------------------------------------------------------------------


def test_more_runs_than_descriptors(logs: Path, tmp_path: Path) -> None:
    for number in range(90):
        (logs / f"run{number:03d}").mkdir()
        (logs / f"run{number:03d}" / "metrics.jsonl").write_bytes(GOOD[:900])

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    for words in (("check", ".", "--json"), ("watch", "--headless", "--until-idle", "1", ".")):
        made = run(logs, tmp_path, *words, limits=limits)
        assert "Too many open files" not in made.stderr + made.stdout, words
        if words[0] == "check":
            assert len(json.loads(made.stdout)["runs"]) == 91
        else:
            ended = json.loads(made.stdout.splitlines()[-1])
            assert (ended["event"], len(ended["verdicts"])) == ("end", 91)


@pytest.mark.parametrize("mib", [64, 90, 100, 105, 110, 115, 120])
def test_hardly_any_memory_is_one_line_that_says_so(logs: Path, tmp_path: Path, mib: int) -> None:
    """Where OpenBLAS itself gives up as it is loaded, it says so and ends the process: nobody is asked before."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))

    made = run(logs, tmp_path, "check", "good.jsonl", "--no-history", limits=limits)
    if made.returncode == 0 or "OpenBLAS" in made.stderr:
        return
    assert (made.returncode, made.stdout, len(made.stderr.splitlines())) == (2, "", 1), made
    assert "memory" in made.stderr
    assert "internal error" not in made.stderr


def test_too_little_memory_is_one_line_or_a_verdict(logs: Path, tmp_path: Path) -> None:
    rows = ",\n".join(f'{{"step": {n}, "loss": 2.5, "words": "{400 * "x"}"}}' for n in range(50_000))
    (logs / "trainer_state.json").write_text('{"log_history": [' + rows + "]}")

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (420 << 20, 420 << 20))

    made = subprocess.run(
        [*TRAINMON, "check", ".", "--json"],
        cwd=logs,
        env={**environment(tmp_path), "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=limits,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert made.returncode in (0, 1, 2), made
    assert "Traceback" not in made.stderr, made.stderr
    found = json.loads(made.stdout)
    by_name = {run["run"]: run for run in found["runs"]}
    assert any(run["verdict"] == "PASS" for run in by_name.values()), "the small log is judged all the same"


# -- signals and streams -------------------------------------------------------------------------------------------


class Headless:
    """``trainmon watch --headless`` and what it has said."""

    def __init__(self, logs: Path, home: Path, *words: str) -> None:
        command = [*TRAINMON, "watch", "--headless", "--no-slurm", *words]
        self.process = subprocess.Popen(
            command, cwd=logs, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said: list[dict[str, object]] = []

    def until(self, holds: Callable[[dict[str, object]], bool]) -> dict[str, object]:
        """Reads events until one is as wished."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))
            if holds(self.said[-1]):
                return self.said[-1]
        raise AssertionError(f"ended without it: {self.said[-3:]} {self.process.communicate()[1]}")

    def step(self, number: int) -> None:
        """Waits for the record of a step."""
        self.until(lambda event: event["event"] == "record" and event["step"] == number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_with_what_is_known(logs: Path, tmp_path: Path, number: signal.Signals) -> None:
    watch = Headless(logs, tmp_path, "--records", "good.jsonl")
    watch.until(lambda event: event["event"] == "state")
    watch.process.send_signal(number)
    rest, errors = watch.process.communicate(timeout=60)
    assert "Traceback" not in errors
    if number == signal.SIGTERM:
        assert watch.process.returncode == 0
        assert json.loads(rest.splitlines()[-1])["event"] == "end"
    else:
        assert watch.process.returncode in (0, 128 + number, -number)


def test_stopped_and_continued_it_goes_on_where_it_was(logs: Path, tmp_path: Path) -> None:
    watch = Headless(logs, tmp_path, "--records", "good.jsonl")
    watch.step(200)
    watch.process.send_signal(signal.SIGTSTP)
    with (logs / "good.jsonl").open("ab") as log:
        log.writelines(b'{"step": %d, "loss": 2.7, "grad_norm": 1.0}\n' % n for n in range(201, 221))
    time.sleep(1.0)
    watch.process.send_signal(signal.SIGCONT)
    watch.step(220)
    watch.process.terminate()
    watch.process.communicate(timeout=60)
    assert [event["step"] for event in watch.said if event["event"] == "record"] == list(range(1, 221))


def closed(*streams: int) -> Callable[[], None]:
    def close() -> None:
        for stream in streams:
            os.close(stream)

    return close


@pytest.mark.parametrize("streams", [(1,), (2,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    "words", [("check", "good.jsonl"), ("watch", "--headless", "--until-idle", "0.5", "good.jsonl")], ids=lambda w: w[0]
)
def test_closed_streams(logs: Path, tmp_path: Path, words: Sequence[str], streams: tuple[int, ...]) -> None:
    made = subprocess.run(
        [*TRAINMON, *words],
        cwd=logs,
        env=environment(tmp_path),
        preexec_fn=closed(*streams),
        check=False,
        timeout=120,
    )
    assert made.returncode == 0
    assert (logs / "good.jsonl").read_bytes() == GOOD


# -- two at once, and killed ---------------------------------------------------------------------------------------


def test_two_copies_on_one_directory_tell_the_same(logs: Path, tmp_path: Path) -> None:
    rows = b"".join(
        b'{"step": %d, "loss": 2.5, "grad_norm": 1.0, "note": "%s"}\n' % (n, b"x" * 200) for n in range(20_000)
    )
    (logs / "large.jsonl").write_bytes(rows)  # large enough for the cache of what was read
    os.utime(logs / "large.jsonl", (1e9, 1e9))  # its age in words stays the same
    for _ in range(2):  # without a cache, and with it
        started = [
            subprocess.Popen(
                [*TRAINMON, "check", "large.jsonl", "--json"],
                cwd=logs,
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(3)
        ]
        said = [each.communicate(timeout=120) for each in started]
        assert {each.returncode for each in started} == {0}
        assert {errors for _, errors in said} == {b""}
        assert len({json.dumps({**json.loads(out)["runs"][0], "age_s": 0}) for out, _ in said}) == 1


WRITER = """
import sys
from pathlib import Path
from trainmon.tails.own_files import write_private
path = Path(sys.argv[1])
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_private(path, letter * 300_000)
"""


def test_killed_while_it_writes_its_state_there_is_the_old_one_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for turn in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], env=environment(tmp_path), stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.005 + 0.007 * turn)
        process.kill()
        process.communicate()
        found = path.read_bytes() if path.exists() else b"a" * 300_000
        assert found in (b"a" * 300_000, b"b" * 300_000), (len(found), found[:1], found[-1:])
    assert len(list(tmp_path.glob(".state*"))) <= 12
