"""What the program can do is in its documents, and what they show works."""

from __future__ import annotations

import doctest
import re
import runpy
import sys
import types
from pathlib import Path

import click
import pytest

from tests.conftest import ROOT
from trainmon.cli import COMMANDS, main
from trainmon.monitor import alias_table
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import Verdict
from trainmon.monitor.settings import Settings
from trainmon.tails.formats.registry import FORMATS
from trainmon.tui.keys import KEYS

pytestmark = pytest.mark.requires("checkout")

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["commands.md", "dialects.md", "keys.md", "signals.md", "thresholds.md", "trainmon.1"])
def test_made_pages_are_up_to_date(name: str) -> None:
    pages = runpy.run_path(str(ROOT / "docs" / "reference.py"))["PAGES"]
    assert page(name) == pages[name](), "run `python docs/reference.py`"


def test_the_quick_form_of_the_key_names_is_up_to_date() -> None:
    assert alias_table.QUICK.read_text(encoding="utf-8") == alias_table.quick_form(), "run `python docs/reference.py`"


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_and_option_is_documented(name: str) -> None:
    assert f"`trainmon {name}" in README
    for option in _command(name).params:
        if isinstance(option, click.Option):
            assert option.help, f"trainmon {name} {option.opts[0]} has no help"
            assert f"`{option.opts[0]}" in page("commands.md")


def test_every_check_is_documented() -> None:
    undocumented = [detector.id for detector in DETECTORS if f"| `{detector.id}` |" not in page("checks.md")]
    assert not undocumented


def test_every_format_is_documented() -> None:
    assert not [name for name in FORMATS if f"| `{name}` |" not in page("formats.md")]


def test_every_verdict_and_exit_status_is_documented() -> None:
    table = README[README.index("## Verdicts") : README.index("## What it never does")]
    assert not [verdict for verdict in Verdict if f"| {verdict.value} |" not in table]
    assert "130" in table


def test_keys_of_the_readme_exist() -> None:
    table = README[README.index("## Keys") : README.index("## Commands")]
    words = {word for key in KEYS for word in key.shown.split()} | {"j k g G"}
    for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        for key in re.findall(r"`([^`]+)`", cell):
            assert key in words, f"the README names the key {key}, which does nothing"


def test_links_and_pictures_are_there() -> None:
    missing = [
        f"{document.name}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / target).exists()
    ]
    assert not missing


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = re.findall(r"^python3 -m venv .*$", README, re.MULTILINE)
    assert [("demo" in command, "pytest" in command) for command in commands] == [(True, False), (False, True)]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in script.splitlines()[-1]


def examples() -> list[str]:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", examples(), ids=lambda code: re.findall(r"^class (\w+)", code, re.MULTILINE)[-1])
def test_examples_of_contributing_run(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), module.__dict__)
    results = doctest.testmod(module)
    assert results.failed == 0
    assert results.attempted or ">>>" not in code


def test_the_settings_shown_are_settings_that_are_read() -> None:
    [example] = re.findall(r"^```toml\n(.*?)^```$", page("formats.md"), re.MULTILINE | re.DOTALL)
    settings = Settings()
    settings.read("run/trainmon.toml", example.encode())
    assert not settings.problems
    assert settings.thresholds["spike.z"] == (8.0, "run/trainmon.toml")
    assert settings.facts == {"total_steps": 20000.0, "gpu_memory_bytes": 85e9}


def test_no_document_names_a_place_of_ours() -> None:
    named = [path.name for path in DOCUMENTS if re.search(r"(?<![\w.])/(?:work|root|home)/", Path(path).read_text())]
    assert not named
