"""A call after some time that comes in any case.

Textual's one-shot timer leaves out its only tick where the time is over before it has begun to wait (`Timer._run` skips
ticks that are late), as happens on a busy machine with short times: what counts on it then waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.message_pump import MessagePump


def call_after(node: MessagePump, seconds: float, call: Callable[[], object]) -> None:
    """Has `node` call `call` in `seconds`, unless it is closed by then. Only from the thread of the screens."""
    asyncio.get_running_loop().call_later(max(seconds, 0.0), node.call_later, call)
