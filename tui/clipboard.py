"""Copying through the terminal itself (OSC 52): it works over ssh, and inside tmux and screen."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from trainmon.tails.text import printable

_MOST_CHARACTERS: Final = 50_000  # xterm takes some 75 KB of base64
_SCREEN_PIECE: Final = 76  # GNU screen hands on no longer strings


def copy_sequence(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """What to write to the terminal so that `text` is copied, and the text as it is copied: printable lines only.

    Inside tmux it is sent twice: to tmux itself (``set-clipboard on``) and through it (``allow-passthrough on``).

    >>> copy_sequence("loss", {})
    ('\\x1b]52;c;bG9zcw==\\x07', 'loss')
    >>> copy_sequence("a", {"TMUX": "/tmp/tmux-0/default,1,0"})[0]
    '\\x1b]52;c;YQ==\\x07\\x1bPtmux;\\x1b\\x1b]52;c;YQ==\\x07\\x1b\\\\'
    """
    kept = "\n".join(printable(line) for line in text[:_MOST_CHARACTERS].splitlines())
    encoded = base64.b64encode(kept.encode()).decode()
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"{sequence}\x1bPtmux;{doubled}\x1b\\", kept
    if environment.get("STY"):
        pieces = (sequence[at : at + _SCREEN_PIECE] for at in range(0, len(sequence), _SCREEN_PIECE))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces), kept
    return sequence, kept
