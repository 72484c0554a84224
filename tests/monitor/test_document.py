"""Valid JSON whatever the values."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.document import dumps
from trainmon.monitor.export.forms import number

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_any_document_is_strict_json(value: object) -> None:
    text = dumps({"value": value})
    json.loads(text, parse_constant=lambda token: (_ for _ in ()).throw(AssertionError(token)))
    text.encode("utf-8")


@given(st.floats())
def test_exported_numbers_read_back_the_same(value: float) -> None:
    text = number(value)
    back = float(text)
    assert (
        math.isnan(back) if math.isnan(value) else (back == value and math.copysign(1, back) == math.copysign(1, value))
    )
    assert len(text) <= max(len(repr(value)), 16)
