"""Names that differ in numbers are said as one, and none is lost or made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.folded_names import folded, told


@given(st.lists(st.text("ab0129./{}*", max_size=8), unique=True, max_size=12))
def test_each_name_is_counted_once(names: list[str]) -> None:
    plain = [word for word in folded(names) if word in names]
    assert len(plain) == len(set(plain))
    if len(names) < 3:
        assert folded(names) == names


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["x.0.y", "x.1.y"], ["x.0.y", "x.1.y"]),
        (["loss@0.1", "loss@0.5", "loss@0.9"], ["loss@0.1", "loss@0.5", "loss@0.9"]),
        (["l0.e0", "l1.e1", "l2.e2"], ["l*.e* (3)"]),
        (["l7.e0", "l7.e1", "l7.e2"], ["l7.e{0-2}"]),
        (["a/01", "a/02", "a/03"], ["a/{1-3}"]),
        (["a/1", "a/01", "a/2"], ["a/* (3)"]),
        (["99999999999a", "99999999998a", "99999999997a"], ["99999999999a", "99999999998a", "99999999997a"]),
    ],
)
def test_what_is_folded(names: list[str], said: list[str]) -> None:
    assert folded(names) == said


def test_the_rest_is_counted() -> None:
    assert told((f"{letter}_loss" for letter in "abcdef"), 4) == "a_loss, b_loss, c_loss, d_loss and 2 more"
