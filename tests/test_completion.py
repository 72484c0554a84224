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
    script = (
        'eval "$(trainmon completion bash)"\n'
        "COMP_WORDS=(trainmon inv); COMP_CWORD=1; _trainmon_completion trainmon inv trainmon\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    made = subprocess.run(
        [found, "-c", script], env=program_in(tmp_path / "bin"), capture_output=True, text=True, check=False
    )
    assert made.stdout.split() == ["inventory"], made.stderr


def program_in(folder: Path) -> dict[str, str]:
    """An environment whose PATH has `trainmon`."""
    folder.mkdir()
    (folder / "trainmon").write_text(
        f"#!{sys.executable}\nfrom trainmon.cli import main\nmain(prog_name='trainmon')\n", encoding="utf-8"
    )
    (folder / "trainmon").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("trainmon inv", "inventory"),
        ("trainmon check --str", "--strict"),
        ("trainmon check --only loss.sp", "loss.spike"),
    ],
)
def test_fish_completes_a_command_line(line: str, wanted: str, tmp_path: Path) -> None:
    """The real shell, asked as its own tab asks."""
    found = shutil.which("fish")
    if found is None:
        lacking("fish is not installed")
    script = f"trainmon completion fish | source; complete -C '{line}'"
    made = subprocess.run(
        [found, "-N", "-c", script], env=program_in(tmp_path / "bin"), capture_output=True, text=True, check=False
    )
    assert wanted in [each.split("\t")[0] for each in made.stdout.splitlines()], made.stderr


def test_zsh_completes_a_command_line(tmp_path: Path) -> None:
    """The real shell in a terminal of its own: what a tab leaves on its line."""
    found = shutil.which("zsh")
    if found is None:
        lacking("zsh is not installed")
    script = """
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'autoload -U compinit; compinit -u -D; PS1=READY; eval "$(trainmon completion zsh)"; echo LOADED'
for n in {1..150}; do zpty -r -t z line && seen+=$line || sleep 0.1; [[ $seen == *LOADED*LOADED* ]] && break; done
zpty -w -n z $'trainmon inv\\t'
for n in {1..150}; do zpty -r -t z line '*' && seen+=$line || sleep 0.1; [[ $seen == *inventory* ]] && break; done
print -r -- "$seen"
"""
    made = subprocess.run(
        [found, "-f", "-c", script.replace("\\\\t", "\\t")],
        env={**program_in(tmp_path / "bin"), "TERM": "dumb"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "inventory" in made.stdout, made.stdout + made.stderr


def test_another_shell_is_said_to_be_unknown(tmp_path: Path) -> None:
    made = run("completion", "tcsh", cwd=tmp_path)
    assert made.returncode == 2
    assert "bash" in made.stderr
