"""Questions that can wait: for older files and their parts. Few are on their way: a new line waits behind them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from trainmon.tails.ssh.ask import Ask, AskPiece

MOST_PIECES = 2
MOST_SMALL = 16  # questions with short answers, which may take some time there
LATE_S = 15.0  # what has not come by then waits for a file system that hangs: it keeps no other question back


class InTurn:
    """Lets questions through to `put`, one after the other. `rate`: bytes a second at most. On the host's thread."""

    def __init__(self, put: Callable[[Ask[Any]], None], most: int, rate: int | None = None) -> None:
        self._put = put
        self._most = most
        self._rate = rate
        self._waiting: deque[Ask[Any]] = deque()
        self._on_way: list[tuple[Ask[Any], float]] = []  # and since when
        self._next_at = 0.0

    def add(self, question: Ask[Any]) -> None:
        """Takes one more."""
        self._waiting.append(question)

    def send(self, now: float) -> None:
        """Lets through what may go by now."""
        self._on_way = [each for each in self._on_way if not each[0].answer.done() and now - each[1] < LATE_S]
        while self._waiting and len(self._on_way) < self._most and now >= self._next_at:
            question = self._waiting.popleft()
            if question.answer.done():  # nobody waits for it any more
                continue
            self._on_way.append((question, now))
            self._put(question)
            if self._rate is not None and isinstance(question, AskPiece):
                self._next_at = max(self._next_at, now - 1.0) + question.length / self._rate
