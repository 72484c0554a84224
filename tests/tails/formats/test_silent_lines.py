"""A line without a word of interest is passed over, unless its prefix says that something failed."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import kinds, read
from trainmon.tails.formats.interest import is_silent
from trainmon.tails.prefix import read_prefix

BEFORE = ("", "[rank0]: ", "0: ", "[default1]:", "(Worker pid=7) ", "2026-01-01 10:00:00 ", "2026-01-01T10:00:00.5Z ")
LEVELS = (
    *("F0503 10:00:00.123456 77 a.cc:5] ", "F20260503 10:00:00.123456 77 a.cc:5] ", "[F] ", "F "),
    *("FATAL ", "[FATAL] ", "- a.b - FATAL - "),
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("before", BEFORE)
def test_a_fatal_line_is_heard_whatever_stands_before_its_level(before: str, level: str) -> None:
    said = f"{before}{level}shapes differ"
    assert read_prefix(said).is_fatal
    assert kinds(read(f"step 1 loss 2.5\nstep 2 loss 2.25\n{said}\n")) == ["error"]


@pytest.mark.parametrize("level", [*LEVELS, *(level.replace("FATAL", "ERROR").replace("F", "E") for level in LEVELS)])
@pytest.mark.parametrize("before", BEFORE)
def test_what_a_prefix_calls_an_error_is_never_silent(before: str, level: str) -> None:
    said = f"{before}{level}shapes differ"
    prefix = read_prefix(said)
    assert not (is_silent(said.encode()) and (prefix.is_fatal or prefix.is_error))


def test_lines_of_other_levels_are_silent_still() -> None:
    for level in ("I0503 10:00:00.123456 77 a.cc:5] ", "[I] ", "2026-01-01 10:00:00 INFO "):
        assert is_silent(f"{level}shapes differ".encode())
