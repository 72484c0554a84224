"""A screen without data says once what is missing, and shows no other panes that say nothing."""

import pytest

from tests.tui.driver import running, text_of
from trainmon.tui import keys


@pytest.mark.parametrize(("key", "words"), [("X", "tokens per expert by layer"), ("L", "no per-layer values")])
async def test_an_empty_screen_is_one_sentence(key: str, words: str) -> None:
    async with running(keys.FLEET) as (app, pilot):
        app.screen.query_one("#table").rows = [row for row in app.rows if row.run.name == "pythia-410m"]
        await pilot.press(key)
        await pilot.pause()
        shown = text_of(app)
        assert words in " ".join(shown.split())
        assert not any(other in shown for other in ("dead and hot", "top movers", "too few values", "neither MaxVio"))


@pytest.mark.parametrize(("kind", "names"), [(keys.EXPERTS, ("#odd", "#heat", "#charts")), (keys.LAYERS, ("#movers",))])
async def test_a_run_that_has_them_shows_them(kind: str, names: tuple[str, ...]) -> None:
    async with running(kind) as (app, _):
        assert all(app.screen.query_one(name).display for name in names)
