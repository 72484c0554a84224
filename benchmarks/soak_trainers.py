"""Trainers whose logs live a hard week: faults, restarts, rotations, torn lines, a file system that goes away."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

_SAVED_EVERY = 500


class Trainer:
    """One run that writes ``metrics.jsonl`` or ``train.log`` in `folder`, a record every `interval_s`.

    `lines`: how many whole lines it has written.
    """

    def __init__(self, folder: Path, seed: int, interval_s: float, began: float) -> None:
        self.rng = random.Random(seed)
        self.is_json = seed % 3 != 0
        self.folder = folder
        folder.mkdir(parents=True)
        self.path = folder / ("metrics.jsonl" if self.is_json else "train.log")
        self.interval_s = interval_s
        self.lines = 0
        self._step = 0
        self._written_to = began
        self._level = 3.0
        self._hot_until = -1
        self._torn = b""
        self._away: Path | None = None
        self.path.touch()

    def write(self, now: float) -> None:
        """Writes what is due by `now` (seconds since the epoch), the last line now and then only in part."""
        if self._away is not None:
            return
        out, self._torn = [self._torn], b""
        while self._written_to + self.interval_s <= now:
            self._written_to += self.interval_s
            out.append(self._line())
        data = b"".join(out)
        if data and self.rng.random() < 0.2:
            cut = len(data) - self.rng.randrange(1, 40)
            data, self._torn = data[:cut], data[cut:]
        with self.path.open("ab") as file:
            file.write(data)
        os.utime(self.path, (now, now))

    def close_line(self, now: float) -> None:
        """Writes the rest of a line that was written in part."""
        with self.path.open("ab") as file:
            file.write(self._torn)
        os.utime(self.path, (now, now))
        self._torn = b""

    def restart(self, now: float) -> None:
        """Dies, and goes on from its last checkpoint."""
        self.close_line(now)
        self._step = max(self._step - 1, 0) // _SAVED_EVERY * _SAVED_EVERY

    def rotate(self, now: float) -> None:
        """Its log is moved to ``.1``, the older ones on by one, all but ``.1`` packed; it writes a new one."""
        self.close_line(now)
        parts = sorted((_number(path), path) for path in self.folder.glob(f"{self.path.name}.*"))
        for number, path in reversed(parts):
            packed = path.suffix == ".gz"
            target = self.folder / f"{self.path.name}.{number + 1}.gz"
            if packed:
                path.rename(target)
            else:
                target.write_bytes(gzip.compress(path.read_bytes()))
                os.utime(target, (now, now))
                path.unlink()
        self.path.rename(self.folder / f"{self.path.name}.1")
        self.path.touch()
        os.utime(self.path, (now, now))

    def go_away(self) -> None:
        """The directory is gone, as when its file system is."""
        self._away = self.folder.with_name(f".{self.folder.name}.away")
        self.folder.rename(self._away)

    def come_back(self) -> None:
        """It is there again."""
        if self._away is not None:
            self._away.rename(self.folder)
            self._away = None

    def _line(self) -> bytes:
        rng, step = self.rng, self._step
        self._step += 1
        self.lines += 1
        if rng.random() < 0.0004:
            self._hot_until = step + 25
        loss: float = self._level - 0.2 * min(step / 20_000, 1) + rng.gauss(0, 0.02)
        grad = rng.lognormvariate(-1, 0.1)
        if step < self._hot_until:
            loss, grad = loss + 2.0, grad * 12
        if rng.random() < 0.0003:
            loss = float("nan")
        values = {
            "loss": round(loss, 4),
            "grad_norm": round(grad, 4),
            "lr": 3e-4,
            "tokens_per_sec": 9000 + rng.random(),
        }
        if self.is_json:
            return json.dumps({"step": step, "time": self._written_to, **values}).encode() + b"\n"
        words = " | ".join(f"{name}: {value}" for name, value in values.items())
        return f"step {step} | {words}\n".encode()


def _number(path: Path) -> int:
    return int(path.name.removesuffix(".gz").rpartition(".")[2])
