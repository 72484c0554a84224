"""The groups of a line are those that a search for each token would find."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails import facts, notes, token_groups
from trainmon.tails.formats import foreign
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.token_groups import TokenGroups

GROUPS = [*(dialect.tokens for dialect in DIALECTS), facts.TOKENS, notes.TOKENS, foreign.TOKENS]
TOKENS = sorted({token for group in GROUPS for token in group})
KEPT = TokenGroups(GROUPS)
PIECES = st.one_of(
    st.sampled_from(TOKENS),
    st.sampled_from(TOKENS).map(lambda token: token[1:]),
    st.sampled_from(TOKENS).map(lambda token: token[:-1]),
    st.text(max_size=8).map(lambda text: text.lower().encode("utf-8", "replace")),
    st.sampled_from([b" ", b"_", b"-", b"0", b"|"]),
)


def by_search(low: bytes) -> int:
    return sum(1 << bit for bit, group in enumerate(GROUPS) if any(token in low for token in group))


@given(st.lists(PIECES, max_size=12).map(b"".join))
def test_what_is_found_by_words_is_what_a_search_finds(low: bytes) -> None:
    assert KEPT.of(low) == by_search(low)


def test_words_without_end_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_groups, "_MOST_WORDS", 20)
    monkeypatch.setattr(token_groups, "_PAUSE", 5)
    groups, rng = TokenGroups(GROUPS), random.Random(1)
    for _ in range(600):
        words = ["".join(rng.choices("abcdeilopstx", k=rng.randrange(1, 7))) for _ in range(rng.randrange(6))]
        low = " ".join([*words, rng.choice(["", "step 5", "train_loss", "out of memory"])]).encode()
        assert groups.of(low) == by_search(low)
