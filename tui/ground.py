"""Whether the terminal's ground is dark, asked of the terminal itself (OSC 11), for ``--theme auto``."""

from __future__ import annotations

import os
import select
import termios
import tty
from contextlib import suppress
from typing import Final

from trainmon.tails.clock import Clock
from trainmon.tails.lazy_pattern import lazy

PATIENCE_S: Final = 1.0
# Every terminal answers the second question, so that the answer to the first need not be waited for in vain.
_ASKED: Final = b"\x1b]11;?\x1b\\\x1b[c"
_DEVICE: Final = lazy(rb"\x1b\[\?[\d;]*c")
_COLOUR: Final = lazy(rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")


def is_dark(answer: bytes) -> bool | None:
    r"""What the terminal's answer says; None for nothing.

    >>> is_dark(b"\x1b]11;rgb:ffff/fafa/e0e0\x1b\\\x1b[?1;2c"), is_dark(b"\x1b]11;rgb:00/11/22\x07")
    (False, True)
    >>> is_dark(b"\x1b[?1;2c")
    """
    found = _COLOUR.search(answer)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    brightness: float = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return brightness < 0.5


def ask_dark(clock: Clock, patience_s: float = PATIENCE_S) -> bool | None:
    """Asks the terminal that the program was started from; None where there is none or it does not say."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        os.close(terminal)
        return None
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        os.write(terminal, _ASKED)
        return is_dark(_answer(terminal, clock, patience_s))
    except OSError:
        return None
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        os.close(terminal)


def _answer(terminal: int, clock: Clock, patience_s: float) -> bytes:
    until, answer = clock.monotonic() + patience_s, b""
    while _DEVICE.search(answer) is None and len(answer) < 4096:
        left = until - clock.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            break
        answer += os.read(terminal, 1024)
    return answer
