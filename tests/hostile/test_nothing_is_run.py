"""Reading logs and configurations imports, compiles and runs nothing of them, writes only where this user's own
files belong, and opens no socket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hostile import attacks

# Runs before anything of the program; what is seen goes out at the end, one JSON line on a descriptor of its own.
WATCHER = """
import atexit, json, os, sys
seen = []
logs = os.environ["WATCHED"]
report = int(os.environ["REPORT"])
NETWORK = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty")
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.link", "os.symlink",
           "os.truncate", "shutil.rmtree", "shutil.copyfile")
def watch(event, args):
    if event in NETWORK or event in STARTS or event == "socket.__new__":
        seen.append([event, repr(args)[:200]])
    elif event == "import" and args[1] and logs in str(args[1]):
        seen.append([event, repr(args)[:200]])
    elif event in ("compile", "exec"):
        name = str(args[1]) if event == "compile" else getattr(args[0], "co_filename", "")
        text = args[0] if event == "compile" and isinstance(args[0], bytes) else str(args[0]).encode(errors="replace")
        if logs in str(name) or b"OWNED" in text:
            seen.append([event, str(name)])
    elif event == "open" and isinstance(args[0], (str, bytes)):
        flags = args[2] if isinstance(args[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or set(str(args[1] or "")) & set("wax+"):
            seen.append(["write", os.fsdecode(args[0])])
    elif event in CHANGES:
        seen.append(["write", os.fsdecode(args[0]) if isinstance(args[0], (str, bytes)) else repr(args)])
    elif event == "sqlite3.connect":
        seen.append(["write", str(args[0])])
sys.addaudithook(watch)
atexit.register(lambda: os.write(report, json.dumps(seen).encode()))
sys.argv[0] = "trainmon"
from trainmon.cli import main
main()
"""


def watched(logs: Path, home: Path, *words: str, status: tuple[int, ...] = (0, 1, 2)) -> list[tuple[str, str]]:
    """What a run of the program did that is more than reading: (event, of what)."""
    reading, writing = os.pipe()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "TRAINMON_"))}
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, *words],
        cwd=logs,
        env={
            **environment,
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "WATCHED": str(logs),
            "REPORT": str(writing),
        },
        pass_fds=[writing],
        capture_output=True,
        check=False,
        timeout=120,
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as report:
        seen = json.loads(report.read())
    assert done.returncode in status, done
    return [(event, what) for event, what in seen]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of hostile runs, and a home."""
    attacks.fill(tmp_path / "logs")
    (tmp_path / "home").mkdir()
    return tmp_path / "logs", tmp_path / "home"


COMMANDS = (
    ("check", "--no-slurm", "."),
    ("inventory", "."),
    ("export", ".", "-s", "loss.train"),
    ("report", "--no-slurm", "worded"),
    ("compare", "structured", "worded"),
    ("preflight", "worded/config.py"),
    ("preflight", "worded/config.yaml"),
    ("preflight", "worded"),
    ("history",),
    ("watch", "--headless", "--no-slurm", "--until-idle", "1", "worded"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_logs_and_configurations_are_data(places: tuple[Path, Path], words: tuple[str, ...]) -> None:
    logs, home = places
    before = sorted(logs.rglob("*"))
    done = watched(logs, home, *words)
    written = [what for event, what in done if event == "write"]
    is_plan = words[0] == "preflight"  # a configuration in Python is parsed into a tree, of which nothing is run
    assert [each for each in done if each[0] != "write" and not (is_plan and each == ("compile", "<unknown>"))] == []
    own = (str(home / ".local"), str(home / ".cache"), str(home / ".config"), "/dev/null", "/dev/tty")
    assert [what for what in written if not what.startswith(own)] == []
    assert sorted(logs.rglob("*")) == before
    assert not list(logs.parent.rglob(attacks.MARK))


def test_the_hook_sees_what_it_is_to_see(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("lr = 1\n")
    program = WATCHER.split("sys.argv[0]")[0] + (
        "import socket; open('x', 'w').close(); socket.socket().close()\n"
        "compile(open('plan.py').read(), os.path.join(logs, 'plan.py'), 'exec')\nos.system('true')\n"
    )
    reading, writing = os.pipe()
    environment = {**os.environ, "WATCHED": str(tmp_path), "REPORT": str(writing)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, pass_fds=[writing], check=True)
    os.close(writing)
    with os.fdopen(reading, "rb") as report:
        events = {event for event, _ in json.loads(report.read())}
    assert events == {"write", "socket.__new__", "compile", "os.system"}
