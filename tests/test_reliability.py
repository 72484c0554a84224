"""docs/reliability.md names only tests that exist."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.requires("checkout")
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def test_every_promise_has_its_tests() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = _NAMED.findall(page)
    assert len(named) > 50
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or f"def {name}(" not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []
    for line in page.splitlines():
        if line.startswith("| ") and not line.startswith("| Promise"):
            assert _NAMED.search(line), f"a promise without a test: {line[:80]}"
