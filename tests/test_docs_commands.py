"""Every command line that a document shows is one that the program takes; every page can be found from the map."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.conftest import ROOT
from trainmon.cli import COMMANDS, main

pytestmark = pytest.mark.requires("checkout")

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
_NAMES = "|".join(entry.name for entry in COMMANDS)
_SHOWN = re.compile(rf"`(trainmon (?:{_NAMES})\b[^`]*)`")
_AFTER = re.compile(r"\s*(?:\|\||&&|[|;]|>>?|&\s|<).*| #.*")
# In words of a sentence, what stands for something.
_STANDS_FOR = re.compile(r"\.\.\.|\bCOMMAND\b|\bNAME,|\||…")


def shown() -> Iterator[tuple[str, str]]:
    """(page, command line) of every fenced line and every word in code that calls a command."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if found := re.match(rf"(?:\$ )?(trainmon (?:{_NAMES})\b.*)", line.strip()):
                    yield path.name, found[1]
        for line in _SHOWN.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)):
            if not _STANDS_FOR.search(line) and "[OPTIONS]" not in line:
                yield path.name, line


@pytest.mark.parametrize("line", sorted({line for _, line in shown()}))
def test_the_program_takes_it(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))  # options that become variables
    _, name, *words = shlex.split(_AFTER.sub("", line))
    command = main.get_command(click.Context(main), name)
    assert command is not None
    typed = {"N": "1", "STEP": "12", "SECONDS": "5", "PID": str(os.getpid()), "ID": "loss.spike"}
    given = [typed.get(word, word) for word in words]
    try:
        with contextlib.suppress(click.exceptions.Exit):  # --help
            command.make_context(name, given)
    except click.MissingParameter:
        assert not any(word for word in given if not word.startswith("-")), line  # an option by itself, in a sentence


def test_there_is_enough_to_check() -> None:
    assert len({line for _, line in shown()}) > 60


def test_every_page_is_on_the_map() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages == {Path(target).name for target in re.findall(r"\]\(([\w-]+\.md)\)", index)}


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_the_map_knows_every_command(name: str) -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"`trainmon {name}" in index or name == "completion"
