"""Expressions compiled at first use do what compiled ones do, and every one of them is sound."""

from __future__ import annotations

import importlib
import re

import pytest

from trainmon.tails.lazy_pattern import LazyPattern, lazy
from trainmon.tails.note_rules import RULES

MODULES = ("tails.prefix", "tails.prefix_times", "tails.looks", "tails.notes", "monitor.key_parts")


@pytest.mark.parametrize("module", MODULES)
def test_every_expression_of_a_module_compiles(module: str) -> None:
    names = vars(importlib.import_module(f"trainmon.{module}"))
    patterns = [value for value in names.values() if isinstance(value, LazyPattern)]
    assert patterns
    assert all(
        isinstance(pattern.search("") or pattern, (re.Match, LazyPattern))
        for pattern in patterns
        if isinstance(pattern.pattern, str)
    )
    assert all(
        isinstance(pattern.search(b"") or pattern, (re.Match, LazyPattern))
        for pattern in patterns
        if isinstance(pattern.pattern, bytes)
    )


def test_every_rule_of_notes_compiles() -> None:
    assert all(rule.pattern.search("\0") is None for rule in RULES)


def test_it_is_compiled_once_and_gives_what_the_compiled_one_gives() -> None:
    text = "a1 b22 c333"
    for pattern, flags in ((r"(?P<name>[A-Z])(\d+)", re.IGNORECASE), (r"\d", 0)):
        one, other = lazy(pattern, flags), re.compile(pattern, flags)
        assert one.findall(text) == other.findall(text)
        assert one.search is one.search
        assert one.sub("x", text, count=1) == other.sub("x", text, count=1)
        assert (one.flags, one.groups, dict(one.groupindex)) == (other.flags, other.groups, dict(other.groupindex))
    with pytest.raises(re.error):
        lazy("(").search("")
