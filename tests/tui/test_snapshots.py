"""A few pictures kept as they are: whoever changes a screen looks at the new picture before accepting it.

Accept with ``pytest tests/tui/test_snapshots.py --snapshot-update``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.tui.driver import WAYS, make_app
from trainmon.tui import keys
from trainmon.tui.glyphs import ASCII, UNICODE, Glyphs

SnapCompare = Callable[..., bool]


def _word(value: object) -> str:
    if isinstance(value, Glyphs):
        return "unicode" if value.braille else "ascii"
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(
    ("kind", "size", "glyphs"),
    [
        (keys.FLEET, (80, 24), UNICODE),
        (keys.FLEET, (160, 48), UNICODE),
        (keys.RUN, (80, 24), UNICODE),
        (keys.RUN, (160, 48), UNICODE),
        (keys.TRIAGE, (80, 24), UNICODE),
        (keys.EVIDENCE, (80, 24), UNICODE),
        (keys.COMPARE, (80, 24), UNICODE),
        (keys.COMPARE, (160, 48), UNICODE),
        (keys.LAYERS, (80, 24), UNICODE),
        (keys.LAYERS, (160, 48), UNICODE),
        (keys.EXPERTS, (80, 24), UNICODE),
        (keys.LOG, (80, 24), UNICODE),
        (keys.ALERTS, (80, 24), UNICODE),
        (keys.INVENTORY, (80, 24), UNICODE),
        (keys.SIGNALS, (80, 24), UNICODE),
        (keys.HELP, (80, 24), UNICODE),
        (keys.RUN, (80, 24), ASCII),
        (keys.LAYERS, (80, 24), ASCII),
    ],
    ids=_word,
)
def test_picture(snap_compare: SnapCompare, kind: str, size: tuple[int, int], glyphs: Glyphs) -> None:
    async def go(pilot: Pilot[None]) -> None:
        await pilot.pause()
        for key in WAYS[kind]:
            await pilot.press(key)
            await pilot.pause()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()

    assert snap_compare(make_app(glyphs=glyphs), run_before=go, terminal_size=size)
