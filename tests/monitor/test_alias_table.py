"""The table of key names is the same from its quick form and from its text, and a changed text counts at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmon.monitor import alias_table
from trainmon.monitor.alias_table import of_entries


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of its own, with its quick form."""
    source = tmp_path / "aliases.toml"
    source.write_text("[[alias]]\nsignal = 'loss.train'\nkeys = ['loss']\npatterns = ['my loss [0-9]']\nunit = 'X'\n")
    monkeypatch.setattr(alias_table, "SOURCE", source)
    monkeypatch.setattr(alias_table, "QUICK", source.with_suffix(".json"))
    alias_table.QUICK.write_text(alias_table.quick_form())
    return source


def test_the_quick_form_says_what_the_text_says(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = of_entries(alias_table._parsed(copied.read_bytes()))
    monkeypatch.setattr(alias_table, "_parsed", None)  # it is not called
    assert of_entries(alias_table._entries()) == slow
    assert slow.exact == {"loss": (0, "loss.train")}
    assert slow.patterns == ((1000, "loss.train", "my loss [0-9]"),)
    assert slow.units == {"loss.train": "x"}


def test_a_changed_text_counts_at_once(copied: Path) -> None:
    copied.write_text(copied.read_text().replace("['loss']", "['loss', 'my_loss']"))
    assert of_entries(alias_table._entries()).exact["my_loss"] == (1, "loss.train")


def test_without_a_quick_form_the_text_is_read(copied: Path) -> None:
    alias_table.QUICK.unlink()
    assert of_entries(alias_table._entries()).exact == {"loss": (0, "loss.train")}
