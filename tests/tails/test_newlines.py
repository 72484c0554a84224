"""Line ends in bulk: the same as one by one, however they lie among the words of eight bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.newlines import count_newlines, newline_places


@given(st.lists(st.integers(0, 40), max_size=40), st.integers(0, 9), st.sampled_from([1, 100]))
def test_places_and_counts_are_those_of_a_plain_search(gaps: list[int], rest: int, times: int) -> None:
    data = (b"".join(b"x" * gap + b"\n" for gap in gaps) + b"x" * rest) * times
    assert newline_places(data).tolist() == [at for at, byte in enumerate(data) if byte == 10]
    assert count_newlines(data) == data.count(b"\n")
