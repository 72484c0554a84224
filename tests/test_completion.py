"""Completion, as the shells themselves ask for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import lacking
from tests.test_cli import run


def offered(words: str, at: int) -> list[str]:
    """What bash would be offered for word `at` of the command line."""
    made = subprocess.run(
        [sys.executable, "-c", "from trainmon.cli import main; main(prog_name='trainmon')"],
        env={**os.environ, "_TRAINMON_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.partition(",")[2] for line in made.stdout.splitlines()]


def test_commands_options_checks_and_signals_are_offered() -> None:
    assert "check" in offered("trainmon ch", 1)
    assert "--strict" in offered("trainmon check --", 2)
    assert "loss.spike" in offered("trainmon check --only loss", 3)
    assert "loss.train" in offered("trainmon export -s loss", 3)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_accepts_its_script(shell: str, tmp_path: Path) -> None:
    found = shutil.which(shell)
    if found is None:
        lacking(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(run("completion", shell, cwd=tmp_path).stdout, encoding="utf-8")
    assert script.stat().st_size > 100
    made = subprocess.run([found, "-n", str(script)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def test_bash_completes_a_command_line(tmp_path: Path) -> None:
    """The real shell: its completion function is called as a tab does."""
    found = shutil.which("bash")
    if found is None:
        lacking("bash is not installed")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "trainmon"
    program.write_text(
        f"#!{sys.executable}\nfrom trainmon.cli import main\nmain(prog_name='trainmon')\n", encoding="utf-8"
    )
    program.chmod(0o755)
    script = (
        'eval "$(trainmon completion bash)"\n'
        "COMP_WORDS=(trainmon inv); COMP_CWORD=1; _trainmon_completion trainmon inv trainmon\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    made = subprocess.run(
        [found, "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    assert made.stdout.split() == ["inventory"], made.stderr


def test_another_shell_is_said_to_be_unknown(tmp_path: Path) -> None:
    made = run("completion", "tcsh", cwd=tmp_path)
    assert made.returncode == 2
    assert "bash" in made.stderr
