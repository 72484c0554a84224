"""Lines of thousands of pairs: read alike whether their shape is known or not."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import read, values
from trainmon.tails.formats import wide

COUNT = 500


def line(step: int, form: str, join: str, *, first: str = "") -> str:
    return join.join(
        [
            f"step {step}/90",
            *(form.format(at, first if first and not at else f"{at + step / 8}") for at in range(COUNT)),
        ]
    )


@pytest.mark.parametrize(("form", "join"), [("l{}_loss={}", ", "), ("layer{}/rms {}", " | "), ("w.{}: {}", " - ")])
def test_a_known_shape_is_read_as_a_new_one(form: str, join: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(step, form, join) + " loss 2.5" for step in range(1, 6)]
    lines.insert(3, line(7, form, join, first="nan") + " loss 2.5")
    lines.insert(5, line(8, form, join, first="1,204") + " loss 2.5")
    text = "\n".join(lines) + "\n"
    quick = read(text)
    key = next(key for key in quick.blocks[0].columns if "3" in key)
    assert len(quick.blocks[0].columns) >= COUNT
    with monkeypatch.context() as without:
        without.setattr(wide.WideShapes, "read", lambda self, text: None)
        slow = read(text)
    for name in (key, *list(quick.blocks[0].columns)[:3]):
        assert repr(values(quick, name)) == repr(values(slow, name))


def test_another_name_is_another_shape() -> None:
    first, second = (line(step, form, ", ") + ", loss=2.5" for step, form in ((1, "a{}={}"), (2, "b{}={}")))
    parsed = read(f"{first}\n{first}\n{second}\n")
    assert [step for step, _ in values(parsed, "b7")] == [2.0]
