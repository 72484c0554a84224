"""The pictures of the README can be made, and every character of them stands in its cell."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "screenshots"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="screenshots/ is not here: an installed copy")


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"screenshots_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_picture_of_the_real_app(tmp_path: Path) -> None:
    make = tool("make")
    paths = asyncio.run(make.make(tmp_path, only="run", png=False))
    assert [path.name for path in paths] == ["run-80x24.svg", "run-160x48.svg"]
    for path in paths:
        svg = path.read_text(encoding="utf-8")
        assert "triage" in svg
        assert "alerts" in svg
        assert str(tmp_path) not in svg


def test_each_character_in_its_cell() -> None:
    picture = tool("picture")
    svg = '<text class="r1" x="12.2" y="20" textLength="48.8" clip-path="url(#c)">a&#160;&lt;b</text>'
    placed = re.findall(r'x="([\d.]+)"[^>]*>([^<]+)<', picture.in_cells(svg))
    assert placed == [("12.2", "a"), ("36.6", "&lt;"), ("48.8", "b")]
