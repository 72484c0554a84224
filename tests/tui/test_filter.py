from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui import sample
from trainmon.tui.filter import NUMBERS, TEXTS, FilterError, parse_filter
from trainmon.tui.row import row_of

ROWS = [row_of(run) for run in sample.fleet().runs]
PIECES = [
    "(",
    ")",
    "and",
    "or",
    "not",
    "-",
    "!",
    '"',
    "state:failed",
    "step>1k",
    "loss<=2.3",
    "verdict:warn",
    "x:y",
    " ",
]


def found(text: str) -> set[str]:
    return {row.run.name for row in ROWS if parse_filter(text)(row)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("state:failed", {"gpt-neox-20b", "mamba-3b-hung"}),
        ("state:oom", {"gpt-neox-20b"}),
        ("verdict:nodata", {"sft-no-metrics"}),
        ("verdict:fail -state:failed", {"olmo-7b-lr-hot"}),
        ("llama muon", {"llama-1b-muon"}),
        ("LLAMA and not (muon or base)", {"llama-8b-restart"}),
        ("step<1k or name:pythia", {"grpo-math-7b", "pythia-410m"}),
        ("mem>90%", {"gpt-neox-20b"}),
        ("age>1h age<5h", {"gpt-neox-20b"}),
        ("kind:spike", {"llama-1b-muon"}),
        ("why:experts", {"moe-16x1b"}),
        ('"out of memory"', {"gpt-neox-20b"}),
        ("attempts=2", {"llama-8b-restart"}),
        ("state!=running alerts>0", {"gpt-neox-20b", "mamba-3b-hung"}),
    ],
)
def test_finds(text: str, names: set[str]) -> None:
    assert found(text) == names


def test_nothing_asked_is_everything() -> None:
    assert len(found("  ")) == len(ROWS)


def test_what_is_not_known_never_compares() -> None:
    assert "sft-no-metrics" not in found("step>=0 or step<0")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step>", "needs a number"),
        ("step>many", "no number"),
        ("loss>3m", "no number"),
        ("colour:red", "no field colour"),
        ("state>3", "is a word"),
        ("(a", "without its )"),
        ("a)", "without its ("),
        ("a or", "missing at the end"),
        ("or a", "missing before or"),
        ("(" * 100, "inside each other"),
        ("x" * 2000, "1000 characters"),
    ],
)
def test_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(FilterError, match=words.replace(")", r"\)").replace("(", r"\(")):
        parse_filter(text)


@given(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)))
def test_never_raises_anything_else(text: str) -> None:
    try:
        predicate = parse_filter(text)
    except FilterError as error:
        assert str(error)  # noqa: PT017 - either way of ending is right, and both are checked
        return
    for row in ROWS:
        assert predicate(row) in (True, False)


@given(st.sampled_from(["state:failed", "llama", "step>1000", "verdict:warn"]), st.sampled_from(["oom", "loss<3"]))
def test_logic(a: str, b: str) -> None:
    everything = found("")
    assert found(f"{a} {b}") == found(a) & found(b) == found(f"{a} and {b}")
    assert found(f"{a} or {b}") == found(a) | found(b)
    assert found(f"not ({a})") == everything - found(a)
    assert found(f"-{a}") == everything - found(a)


def test_every_field_can_be_asked() -> None:
    row = row_of(replace(sample.healthy(), name="x"))
    for field in NUMBERS:
        assert parse_filter(f"{field}>=0")(row) in (True, False)
    for field in TEXTS:
        assert parse_filter(f"{field}:a")(row) in (True, False)
