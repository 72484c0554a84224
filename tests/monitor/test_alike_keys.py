"""What no pattern finds in one key it finds in none that differs only in numbers that no pattern asks for."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.counting import calls_of
from trainmon.monitor import mapping
from trainmon.monitor.alias_table import aliases
from trainmon.monitor.alike_keys import shape_of

WORDS = (
    "loss",
    "layer",
    "expert",
    "rank",
    "p99",
    "lr group",
    "mtp",
    "grad",
    "fp16",
    "gpu",
    "val",
    "/",
    " ",
    "step",
    "l2",
)


def hits(text: str) -> list[bool]:
    return [re.fullmatch(pattern, text) is not None for _, _, pattern in aliases().patterns]


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.integers(10, 9999)), min_size=1, max_size=4), st.data())
def test_keys_of_one_shape_match_the_same_patterns(parts: list[tuple[str, int]], data: st.DataObject) -> None:
    text = "".join(f"{word}{number}" for word, number in parts)
    others = [(word, data.draw(st.integers(10 ** (len(str(n)) - 1), 10 ** len(str(n)) - 1))) for word, n in parts]
    other = "".join(f"{word}{number}" for word, number in others)
    if shape_of(text) == shape_of(other):
        assert hits(text) == hits(other)


def test_what_many_fresh_keys_cost_is_a_look_each() -> None:
    mapping.map_key.cache_clear()
    mapping.map_key("fresh_1000/score_kept")
    cost = calls_of(lambda: [mapping.map_key(f"fresh_{2000 + i}/score_kept") for i in range(400)])
    assert cost < 400 * 100  # the table has some 300 patterns
