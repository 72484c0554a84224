"""Whatever is printed or written of a hostile log is printable text, whether a terminal or a pipe takes it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import attacks
from tests.terminal import Terminal

ALL = (".",)
COMMANDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("check",), ALL),
    (("check", "--explain", "loss.spike"), ALL),
    (("inventory",), ALL),
    (("export",), ALL),
    (("export", "-s", "loss.train"), ALL),
    (("report",), ("structured",)),
    (("report", "--log-excerpts"), ("worded",)),
    (("report", "--html"), ("worded",)),
    (("compare",), ("structured", "worded")),
    (("compare", "--format", "markdown"), ("structured", "worded")),
    (("compare", "--format", "csv"), ("structured", "worded")),
    (("preflight",), ("structured/config.yaml",)),
    (("preflight",), ("worded/config.py",)),
    (("preflight",), ("worded",)),
    (("history",), ()),
)
DOCUMENTS = (
    ("check", "--json", "."),
    ("inventory", "--json", "."),
    ("report", "--json", "worded"),
    ("compare", "--format", "json", "structured", "worded"),
    ("preflight", "--json", "worded"),
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    attacks.fill(folder)
    return folder


def run(logs: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "trainmon", *words]
    done = subprocess.run(command, cwd=logs, capture_output=True, check=False, timeout=120)
    assert done.returncode in (0, 1, 2), done
    assert b"internal error" not in done.stdout + done.stderr, done
    return done


def shown(data: bytes) -> list[str]:
    return attacks.unprintable(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))


@pytest.mark.parametrize(("command", "targets"), COMMANDS, ids=lambda words: " ".join(words)[:40])
def test_printed_text_is_printable(logs: Path, command: tuple[str, ...], targets: tuple[str, ...]) -> None:
    done = run(logs, *command, *targets)
    assert shown(done.stdout) == []
    assert shown(done.stderr) == []


@pytest.mark.parametrize("command", DOCUMENTS, ids=lambda words: " ".join(words)[:40])
def test_documents_are_json_without_control_characters(logs: Path, command: tuple[str, ...]) -> None:
    done = run(logs, *command)
    assert shown(done.stdout) == []
    assert isinstance(json.loads(done.stdout, parse_constant=pytest.fail), dict)


def test_a_table_keeps_its_rows_whatever_a_key_is(logs: Path) -> None:
    done = run(logs, "export", "structured", "-s", "loss.train")
    rows = list(csv.reader(io.StringIO(done.stdout.decode())))
    assert len(rows) > 100
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize("name", ["=cmd|' calc'!A0", "@SUM(1)", "+1+cmd|'x'!A0", "-rf", " =1"])
def test_no_name_in_a_table_is_a_formula(tmp_path: Path, name: str) -> None:
    """Whoever names a directory or a key must not compute in the spreadsheet of the one who opens the table."""
    for run_name in (name, "other"):
        (tmp_path / run_name).mkdir()
        rows = (json.dumps({"step": step, "loss": -2.5, f"{name}/loss": -1.5}) for step in range(60))
        (tmp_path / run_name / "metrics.jsonl").write_text("\n".join(rows))
    tables = [
        run(tmp_path, "export", ".", "-s", "loss.train"),
        run(tmp_path, "compare", "--format", "csv", "--", name, "other"),
    ]
    for done in tables:
        rows_read = list(csv.reader(io.StringIO(done.stdout.decode())))
        assert f"'{name}" in {row[0] for row in rows_read}, done
        words = [cell for row in rows_read for cell in row]
        assert not [word for word in words if word.lstrip()[:1] in tuple("=+@-") and not is_number(word)], words


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def test_files_for_other_programs_are_clean(logs: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    run(logs, "check", ".", "--sarif", str(tmp_path / "x.sarif"), "--junit", str(tmp_path / "x.xml"))
    assert json.loads((tmp_path / "x.sarif").read_bytes())["version"] == "2.1.0"
    assert shown((tmp_path / "x.sarif").read_bytes()) == []
    ElementTree.parse(tmp_path / "x.xml")
    assert shown((tmp_path / "x.xml").read_bytes()) == []
    run(logs, "report", "--html", "worded", "-o", str(tmp_path / "x.html"))
    page = (tmp_path / "x.html").read_text()
    assert f'http://{attacks.MARK}/"' not in page
    assert "<script" not in page.lower()


def test_on_a_terminal_it_is_text_too(logs: Path) -> None:
    with Terminal([sys.executable, "-m", "trainmon", "check", str(logs)], columns=120, rows=40) as terminal:
        terminal.wait_exit()
        assert attacks.misused(terminal.output) == []
        assert b"\x1b]" not in terminal.output
        assert terminal.title == ""


def test_standard_input_too(logs: Path) -> None:
    for data in (attacks.json_log(), attacks.text_log()):
        command = [sys.executable, "-m", "trainmon", "check", "-"]
        done = subprocess.run(command, cwd=logs, input=data, capture_output=True, check=False, timeout=120)
        assert done.returncode in (0, 1, 2), done
        assert shown(done.stdout + done.stderr) == []
