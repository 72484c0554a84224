"""Which of many words a line holds, at the cost of a look-up for each word of the line instead of a search for each.

Logs are written with few words. A token can only be in a line that has its longest run of letters within one of the
line's own runs, so what a run of letters could be part of is worked out once and kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainmon.tails.lazy_pattern import lazy

_RUN = lazy(rb"[a-z\x80-\xff]+")
_SHORTEST = 3  # letters; a token without so long a run is looked for in each line
_BLANKED = bytes(code if 97 <= code <= 122 or code >= 128 else 32 for code in range(256))
_MOST_WORDS = 1 << 14
_LONGEST_WORD = 64
_AT_ONCE = 3  # words of one line that are new; a line of more is searched for each token
_PAUSE = 1 << 16  # lines with new words that are so searched once all room is taken, before words are learned anew

_Told = tuple[int, tuple[tuple[bytes, int], ...]]  # groups of a word, and tokens that it may be part of


class TokenGroups:
    """Tokens, in lower case, of several groups. `of` gives a bit for each group of which a line holds a token.

    >>> groups = TokenGroups([(b"loss", b"it/s"), (b"out of memory",)])
    >>> [groups.of(line) for line in (b"train_loss 2.5", b"3 it/s, out of memory", b"memory: 3 GB", b"hello")]
    [1, 3, 0, 0]
    """

    def __init__(self, groups: Sequence[Sequence[bytes]]) -> None:
        self._tokens: dict[bytes, int] = {}
        for bit, tokens in enumerate(groups):
            for token in tokens:
                self._tokens[token] = self._tokens.get(token, 0) | 1 << bit
        self._short: list[tuple[bytes, int]] = []
        self._by_run: dict[bytes, list[tuple[bytes, int]]] = {}
        for token, bits in self._tokens.items():
            run = max(_RUN.findall(token), key=len, default=b"")
            if len(run) < _SHORTEST:
                self._short.append((token, bits))
            else:
                self._by_run.setdefault(run, []).append((token, bits))
        self._silent: set[bytes] = set()  # words that are part of no token
        self._telling: dict[bytes, _Told] = {}
        self._pause = 0

    def of(self, low: bytes) -> int:
        """The groups of which `low`, in lower case, holds a token: bit 0 stands for the first."""
        found = 0
        for token, bits in self._short:
            if token in low:
                found |= bits
        words = low.translate(_BLANKED).split()
        if self._silent.issuperset(words):
            return found
        new = 0
        for word in set(words).difference(self._silent):
            told = self._telling.get(word)
            if told is None:
                new += 1
                if new > _AT_ONCE or self._is_resting():
                    return found | self._search(low)
                told = self._learn(word)
            found |= told[0]
            for token, bits in told[1]:
                if token in low:
                    found |= bits
        return found

    def _is_resting(self) -> bool:
        """Whether there is no room for another word: words that never end, such as random ones, are not worth it."""
        if self._pause:
            self._pause -= 1
        elif len(self._silent) + len(self._telling) >= _MOST_WORDS:
            self._pause = _PAUSE
            self._silent.clear()
            self._telling.clear()
        return self._pause > 0

    def _search(self, low: bytes) -> int:
        found = 0
        for token, bits in self._tokens.items():
            if token in low:
                found |= bits
        return found

    def _learn(self, word: bytes) -> _Told:
        sure, maybe = 0, []
        for run, tokens in self._by_run.items():
            if run in word:
                for token, bits in tokens:
                    if token == run:
                        sure |= bits
                    else:
                        maybe.append((token, bits))
        told = sure, tuple(maybe)
        if len(word) <= _LONGEST_WORD:
            if sure or maybe:
                self._telling[word] = told
            else:
                self._silent.add(word)
        return told
