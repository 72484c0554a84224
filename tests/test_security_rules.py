"""The security rules of ruff (flake8-bandit) find nothing in the product but what was looked at and is listed here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, lacking

pytestmark = pytest.mark.requires("checkout")

# Not asked for: S101 asserts are for types and for what cannot be; S603 and S607 are every start of a program, of which
# those of ssh, scp, squeue and the user's own commands are tested one by one; S311 random numbers of simulated runs.
LEFT_OUT = "S101,S603,S607,S311"
SEEN = {
    ("monitor/finding.py", "S105"): "the verdict PASS is no password",
    ("monitor/history.py", "S608"): "the statement is put together from constants; values are parameters",
    ("monitor/sinks/ping.py", "S310"): "only http and https are asked, also after a redirection: tested",
    (
        "tails/formats/sqlite_store.py",
        "S608",
    ): "names are quoted: tested; the store is a copy in memory",
    ("tails/jobs.py", "S108"): "a path is compared with /tmp, nothing is made there",
}
PRODUCT = ("tails", "monitor", "tui", "trainmon")


def test_nothing_but_what_was_looked_at() -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        lacking("ruff is not installed")
    command = [ruff, "check", "--select", "S", "--ignore", LEFT_OUT, "--output-format", "json", *PRODUCT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {(str(Path(each["filename"]).relative_to(ROOT)), each["code"]) for each in json.loads(done.stdout)}
    assert found <= set(SEEN)


def test_nothing_unpickles_or_evaluates() -> None:
    banned = ("import pickle", "import marshal", "import shelve", "yaml.load", " eval(", " exec(", "__import__(")
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not [word for word in banned if word in text and "far_python" not in path.name], path
