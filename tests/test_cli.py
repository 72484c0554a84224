"""The command line's promises: exit statuses, one clear line, a document whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "".join(f'{{"step": {step}, "loss": {3 - step / 1000}, "grad_norm": 1.0}}\n' for step in range(1, 201))
BAD = GOOD + "".join(f'{{"step": {step}, "loss": NaN, "grad_norm": 1.0}}\n' for step in range(201, 221))


def run(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainmon", *words],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "good.jsonl").write_text(GOOD, encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text(BAD, encoding="utf-8")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "words.log").write_text("hello\n", encoding="utf-8")
    (tmp_path / "noise.log").write_bytes(bytes(range(256)) * 40)
    return tmp_path


@pytest.mark.parametrize(
    ("targets", "status"),
    [
        (("good.jsonl",), 0),
        (("good.jsonl", "good.jsonl"), 0),
        (("bad.jsonl",), 1),
        (("good.jsonl", "bad.jsonl", "nope.jsonl"), 1),
        (("good.jsonl", "nope.jsonl"), 2),
        (("good.jsonl", "empty.jsonl"), 2),
        (("good.jsonl", "words.log"), 2),
        (("good.jsonl", "noise.log"), 2),
        (("good.jsonl", "*.zzz"), 2),
        (("nope/",), 2),
        (("*.jsonl",), 1),
        ((".",), 1),
    ],
)
def test_exit_status_of_check(logs: Path, targets: tuple[str, ...], status: int) -> None:
    made = run("check", *targets, "--json", cwd=logs)
    document = json.loads(made.stdout)
    assert (made.returncode, document["exit"]) == (status, status)
    assert "Traceback" not in made.stderr


def test_strict_makes_a_warning_count(logs: Path) -> None:
    (logs / "warn.jsonl").write_text(GOOD.replace('"loss": 2.9,', '"loss": NaN,'), encoding="utf-8")
    assert run("check", "warn.jsonl", "-q", cwd=logs).returncode == 0
    assert run("check", "warn.jsonl", "-q", "--strict", cwd=logs).returncode == 1


@pytest.mark.parametrize("words", [("--window", "3"), ("--threshold", "x"), ("--bogus",)])
def test_wrong_usage_prints_a_document_too(logs: Path, words: tuple[str, ...]) -> None:
    made = run("check", "good.jsonl", "--json", *words, cwd=logs)
    assert made.returncode == 2
    document = json.loads(made.stdout)
    assert (document["exit"], document["runs"]) == (2, [])
    assert document["problems"]


@pytest.mark.parametrize("words", [("--window", "9" * 20), ("--threshold", "nan"), ("--threshold", "inf")])
def test_absurd_numbers_are_refused(logs: Path, words: tuple[str, ...]) -> None:
    made = run("check", "good.jsonl", *words, cwd=logs)
    assert made.returncode == 2
    assert "Invalid value" in made.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["check", "export"])
def test_a_full_disk_is_one_line_and_no_verdict(logs: Path, command: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        made = subprocess.run(
            [sys.executable, "-m", "trainmon", command, "good.jsonl"],
            cwd=logs,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert made.returncode == 2
    assert made.stderr.startswith("trainmon: ")
    assert len(made.stderr.splitlines()) == 1


def test_a_reader_that_leaves_is_no_error(logs: Path) -> None:
    command = f"{sys.executable} -m trainmon export good.jsonl -s loss.train | head -n 1; exit ${{PIPESTATUS[0]}}"
    made = subprocess.run(["bash", "-c", command], cwd=logs, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stdout, made.stderr) == (0, "run,attempt,step,loss.train\n", "")


def test_keys_that_json_must_escape_are_read_like_others(logs: Path) -> None:
    for key in ('a"b', "a\\b", "a\nb", "\x07", "\ud800"):
        line = json.dumps({"step": 1, "loss": 2.5, key: 1})
        (logs / "odd.jsonl").write_text(f"{line}\n" * 3 + GOOD, encoding="utf-8")
        made = run("check", "odd.jsonl", "--json", cwd=logs)
        [found] = json.loads(made.stdout)["runs"]
        assert found["files"][0]["unreadable"] == 0
        assert found["steps"]["last"] == 200


@pytest.mark.parametrize("command", ["check", "inventory", "export"])
def test_no_control_character_of_a_log_is_printed(logs: Path, command: str) -> None:
    key = "\x1b]0;PWN\x07k\x9b2J\u202e"
    record = json.dumps({"step": 1, "loss": 2.5, key: 1})
    (logs / "evil.jsonl").write_text(f"{record}\n" * 60, encoding="utf-8")
    made = run(command, "evil.jsonl", cwd=logs, PYTHONIOENCODING="utf-8")
    for text in (made.stdout, made.stderr):
        assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}


def test_an_ascii_terminal_gets_escapes(logs: Path) -> None:
    (logs / "cjk.jsonl").write_text(GOOD.replace('"grad_norm"', '"損失"'), encoding="utf-8")
    made = run("export", "cjk.jsonl", cwd=logs, PYTHONIOENCODING="ascii")
    assert made.returncode == 0
    assert "\\u640d\\u5931" in made.stdout
