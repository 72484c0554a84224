"""What a terminal can do to fetch a person: its bell, and a desktop notification (OSC 9 or OSC 777)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from trainmon.monitor.sinks.event import AlertEvent
from trainmon.tails.text import printable

BELL: Final = "\a"
WAYS: Final = ("auto", "osc9", "osc777")
_MOST_WORDS: Final = 200


class Bell:
    """Rings for what is open, once for all that came at one moment."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def send(self, events: Sequence[AlertEvent]) -> None:
        """Rings, unless all is good news."""
        if not all(event.is_over for event in events):
            self._write(BELL)

    def close(self, patience_s: float) -> None:
        """Holds nothing back."""


class Desktop:
    """One notification for all that came at one moment. `way`: "osc9", "osc777", or "auto" by the terminal."""

    def __init__(self, write: Callable[[str], None], environment: Mapping[str, str], way: str = "auto") -> None:
        self._write = write
        self._environment = environment
        self._way = way

    def send(self, events: Sequence[AlertEvent]) -> None:
        """Shows the loudest, and how many there are."""
        first = max(events, key=lambda event: event.rank)
        more = f" (and {len(events) - 1} more)" if len(events) > 1 else ""
        self._write(notification(first.headline + more, self._environment, self._way))

    def close(self, patience_s: float) -> None:
        """Holds nothing back."""


def notification(text: str, environment: Mapping[str, str], way: str = "auto") -> str:
    """The control sequence that shows `text` as a notification; inside tmux and screen it is passed on to the
    terminal outside.

    >>> notification("loss: NaN", {})
    '\\x1b]9;trainmon: loss: NaN\\x1b\\\\'
    >>> notification("x; y", {"TERM": "foot"})
    '\\x1b]777;notify;trainmon;x, y\\x1b\\\\'
    >>> notification("x", {"TMUX": "/tmp/tmux"})
    '\\x1bPtmux;\\x1b\\x1b]9;trainmon: x\\x1b\\x1b\\\\\\x1b\\\\'
    """
    shown = printable(text, _MOST_WORDS)
    if way == "auto":
        way = "osc777" if _speaks_777(environment) else "osc9"
    if way == "osc777":
        return passed_on(f"\x1b]777;notify;trainmon;{shown.replace(';', ',')}\x1b\\", environment)
    return passed_on(f"\x1b]9;trainmon: {shown}\x1b\\", environment)


def passed_on(sequence: str, environment: Mapping[str, str]) -> str:
    """`sequence` wrapped so that tmux (with ``allow-passthrough``) or screen gives it to the terminal outside."""
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environment.get("STY"):
        # screen ends the string at the first ESC \: the ST of the sequence inside is written as BEL.
        inner = sequence.removesuffix("\x1b\\") + BELL
        return f"\x1bP{inner}\x1b\\"
    return sequence


def _speaks_777(environment: Mapping[str, str]) -> bool:
    term = environment.get("TERM", "")
    return term.startswith(("rxvt", "foot")) or bool(environment.get("VTE_VERSION"))
