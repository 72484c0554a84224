"""What is loaded when: starting is fast, and nothing below the screens knows of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trainmon.monitor.simulate.simulation import DEFAULT_RUNS, Simulation

SCREENS = {"textual", "rich"}
TABLES = {"pandas", "pyarrow", "polars"}
CHARTS = {"plotext"}
HEAVY = {"numpy", "msgspec"}
# What only a live session, a settings file, a scheduler or a cluster needs.
FOR_OTHERS = {
    "asyncio",
    "concurrent",
    "logging",
    "multiprocessing",
    "platformdirs",
    "subprocess",
    "tempfile",
    "tomllib",
}

_RUN = """
import json, sys
try:
    exec(sys.argv.pop(1))
finally:
    sys.stderr.write("LOADED " + json.dumps(sorted(sys.modules)))
"""
_COMMAND = "from trainmon.cli import main\nmain()"
_EVERY_MODULE = """
import importlib, pkgutil
for name in ("trainmon.tails", "trainmon.monitor"):
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
"""


def loaded(code: str, *arguments: str, status: tuple[int, ...] = (0,)) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, code, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode in status, done.stderr
    modules: list[str] = json.loads(done.stderr.rpartition("LOADED ")[2])
    assert "json" in modules
    return {name.partition(".")[0] for name in modules}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    run = replace(DEFAULT_RUNS[0], history_steps=200)
    Simulation(folder, runs=(run,), faults=()).write_history()
    return folder / run.name / "metrics.jsonl"


def test_the_package_alone_costs_nothing() -> None:
    assert not loaded("import trainmon") & (SCREENS | TABLES | CHARTS | HEAVY | {"click"})


def test_the_version_is_told_before_the_command_line_is_loaded() -> None:
    assert not loaded("from trainmon.__main__ import main\nmain()", "--version") & {"click", "typing", "dataclasses"}


def test_the_command_line_loads_nothing_before_its_command_runs() -> None:
    assert not loaded("import trainmon.cli") & (SCREENS | TABLES | CHARTS | HEAVY)


@pytest.mark.parametrize("command", [("check",), ("check", "--json"), ("inventory",), ("export", "-s", "loss.train")])
def test_commands_without_a_screen_load_no_screen_library(command: tuple[str, ...], log: Path) -> None:
    modules = loaded(_COMMAND, command[0], str(log), *command[1:], status=(0, 1))
    assert "numpy" in modules
    assert not modules & (SCREENS | TABLES | CHARTS)


def test_a_check_loads_nothing_that_a_log_alone_does_not_need(log: Path) -> None:
    assert not loaded(_COMMAND, "check", "--no-slurm", str(log), status=(0, 1)) & FOR_OTHERS


def test_nothing_below_the_screens_knows_of_them() -> None:
    modules = loaded(_EVERY_MODULE)
    assert "numpy" in modules
    assert not modules & (SCREENS | TABLES | CHARTS)


def test_watch_loads_no_table_library() -> None:
    modules = loaded("import trainmon.tui.app, trainmon.monitor.session")
    assert "textual" in modules
    assert not modules & (TABLES | CHARTS)


def test_the_first_screen_is_painted_before_what_judges_is_loaded() -> None:
    code = "import sys, trainmon.commands.watch, trainmon.tui.app, trainmon.monitor.sinks.settings\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    found = set(done.stdout.split())
    assert "trainmon.tui.app" in found
    assert not found & {"trainmon.monitor.engine", "trainmon.monitor.detectors.registry", "trainmon.monitor.session"}
