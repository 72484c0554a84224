from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import trainmon.tui

MODULES = [module.name for module in pkgutil.walk_packages(trainmon.tui.__path__, "trainmon.tui.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
