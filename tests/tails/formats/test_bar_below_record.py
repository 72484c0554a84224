"""A bar below a record that ends in ``|`` is no rest of it."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import read, values


@pytest.mark.parametrize("label", ["Eval: ", "Validating: ", "loss check: "])
def test_a_record_whose_end_looks_folded_is_not_joined_with_a_bar_below_it(label: str) -> None:
    text = "".join(
        f" iteration {at:8d}/     100 | lm loss: 2.{at} | grad norm: 0.5 |\n"
        f"{label}100%|####################| 10/10 [00:10<00:00, 3.2it/s, loss=6.{at}]\n"
        for at in range(11, 14)
    )
    parsed = read(text)
    assert values(parsed, "lm loss") == [(float(at), float(f"2.{at}")) for at in range(11, 14)]
    assert values(parsed, "grad norm") == [(float(at), 0.5) for at in range(11, 14)]
