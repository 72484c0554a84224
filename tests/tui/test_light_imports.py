"""What no screen may bring in: `numpy.ma` takes longer to import than an answer to a key may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_TOUR = """
import asyncio, sys
from tests.tui.driver import WAYS, make_app

async def tour():
    for keys in WAYS.values():
        app = make_app()
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.pause()
            for key in keys:
                await pilot.press(key)
                await pilot.pause()
                if "numpy.ma" in sys.modules:
                    raise SystemExit(f"brought in by {keys} at {key}")

asyncio.run(tour())
"""


def test_no_screen_imports_masked_arrays() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", _TOUR], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
