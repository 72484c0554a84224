"""What stands beside a group's loss that rises: the mean loss meanwhile, and the group's share of the tokens."""

from __future__ import annotations

import math

from trainmon.monitor.detectors.common import finite
from trainmon.monitor.detectors.families import families
from trainmon.monitor.detectors.newest import Newest
from trainmon.monitor.finding import Finding
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.tail import Tail

LOSS = SignalKey("loss.train")
SHARES = {"loss.source": "source.token_share", "loss.modality": "modality.token_share"}
REMEMBERED = 2000  # losses; a shift is told within a few hundred values of its first step
COMPARED = 20


class GroupContext:
    """Keeps the newest losses and token shares. `feed` each frame before it is judged, `close` after.

    What is told of a row depends on the rows up to it and on nothing else.
    """

    def __init__(self, flat: float) -> None:
        self.flat = flat
        self.losses = Tail(REMEMBERED)
        self.shares: dict[SignalKey, Newest] = {}
        self.first_shares: dict[SignalKey, float] = {}
        self.words: dict[SignalKey, str] = {}
        self._told_shares: dict[SignalKey, dict[str, float]] = {}
        self._frame: Frame | None = None

    def feed(self, frame: Frame) -> None:
        """Takes the next frame."""
        self._frame = frame
        known = families(frame)
        for signal in SHARES.values():
            for key in known.get(signal, ()):
                if key not in self.shares:
                    self.shares[key] = Newest(key)
        for share in self.shares.values():
            share.feed(frame)

    def close(self, frame: Frame) -> None:
        """The frame has been judged."""
        losses = finite(frame, LOSS)
        self.losses.extend(losses.steps, losses.values)
        self._frame = None

    def told(self, said: Finding, row: int) -> str:
        """The words of a finding at `row`, with what stands beside it."""
        words = self._mean(said.first_step if said.first_step is not None else said.step, row)
        share = self._share(said.signal, row)
        self.words[said.signal] = "".join(f"; {part}" for part in (words, share) if part)
        return self.again(said.signal, said.what)

    def again(self, key: SignalKey, what: str) -> str:
        """`what` with the words that were told last of the same series."""
        return what + self.words.get(key, "") if what else what

    def shares_of(self, key: SignalKey) -> dict[str, float | str]:
        """The share of the tokens of a group of which something was told: now, and when it was first told."""
        return dict(self._told_shares.get(key, {}))

    def _mean(self, first_step: float, row: int) -> str:
        known, losses = self.losses.steps, self.losses.values
        before: list[float] = losses[known < first_step][-COMPARED:].tolist()
        since: list[float] = losses[known >= first_step][-COMPARED:].tolist()
        if self._frame is not None:
            values = finite(self._frame, LOSS)
            upto = int(values.rows.searchsorted(row, side="right"))
            steps, xs = values.steps[:upto], values.values[:upto]
            before = (before + xs[steps < first_step][-COMPARED:].tolist())[-COMPARED:]
            since = (since + xs[steps >= first_step][-COMPARED:].tolist())[-COMPARED:]
        since = since[-COMPARED:]
        if len(before) < COMPARED or len(since) < COMPARED:
            return ""
        then, now = (sorted(part)[COMPARED // 2] for part in (before, since))
        if then <= 0 or now <= 0:
            return ""
        change = now / then - 1
        if abs(change) < self.flat:
            return f"the mean loss stayed at {now:.4g} (flat)"
        return f"the mean loss went from {then:.4g} to {now:.4g}"

    def _share(self, key: SignalKey, row: int) -> str:
        signal = SHARES.get(key.signal)
        share = self.shares.get(SignalKey(signal, key.labels)) if signal is not None else None
        now = share.at([row])[0] if share is not None else math.nan
        if math.isnan(now):
            return ""
        before = self.first_shares.setdefault(key, now)
        self._told_shares[key] = {"token_share": now, "token_share_before": before}
        was = f", {before:.1%} when it was first told" if abs(now - before) > 0.2 * before else ""
        return f"its share of the tokens is {now:.1%}{was}"
