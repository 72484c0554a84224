"""docs/python.md runs as it stands."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainmon.monitor.simulate.faults import FAULTS

pytestmark = pytest.mark.requires("checkout")


def test_every_line_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted > 10


def test_the_help_of_demo_names_every_fault() -> None:
    from trainmon.commands.demo import demo

    assert demo.epilog is not None
    named = demo.epilog.partition("Faults:")[2].partition("Examples:")[0].replace("\b", "").replace(",", " ").split()
    assert sorted(named) == sorted(FAULTS)
