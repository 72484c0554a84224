"""A log to which anything happens, in any order and at any moment: every byte arrives once, in its place."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import Near, bare_path, server
from trainmon.tails.ssh import host as host_module

ROUNDS = 15


class Story:
    """A writer that appends, rotates and is cut off; `content` is all that it ever wrote."""

    def __init__(self, path: Path, far: Sshd, seed: int, *, shifts: bool) -> None:
        self.path = path
        self.far = far
        self.content = b""
        self.parts = 0
        self.shifts = shifts  # the newest part is number 1, as logrotate has it; else the highest one
        self.chance = random.Random(seed)

    def step(self) -> None:
        """One thing that happens."""
        what = self.chance.choice([self.append, self.append, self.append, self.append_much, self.rotate, self.drop])
        what()
        time.sleep(self.chance.choice([0.0, 0.01, 0.1]))

    def append(self) -> None:
        self._write(self.chance.randbytes(self.chance.randint(1, 200)).replace(b"\0", b"0"))

    def append_much(self) -> None:
        self._write(self.chance.randbytes(self.chance.randint(1, 400_000)).replace(b"\0", b"0"))

    def rotate(self) -> None:
        """As logrotate does; the writer goes on in the new file."""
        if self.path.stat().st_size == 0:
            return
        self.parts += 1
        for number in range(self.parts - 1, 0, -1) if self.shifts else ():
            self._part(number).rename(self._part(number + 1))
        self.path.rename(self._part(1 if self.shifts else self.parts))
        self.path.touch()
        self.append()

    def _part(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def drop(self) -> None:
        self.far.drop_connections()

    def _write(self, data: bytes) -> None:
        with self.path.open("ab") as out:
            out.write(data)
        self.content += data


@pytest.mark.parametrize("shifts", [False, True])
@pytest.mark.parametrize("is_bare", [False, True])
def test_whatever_happens(
    connect: Callable[..., Near], tmp_path: Path, is_bare: bool, shifts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RETRY_FIRST_S": 0.1, "RETRY_LAST_S": 0.2, "READY_WITHIN_S": 6.0}.items():
        monkeypatch.setattr(host_module, name, value)
    with server(tmp_path / "own", path=bare_path(tmp_path) if is_bare else "") as own:
        near = connect(own)
        (tmp_path / "logs").mkdir()
        path = tmp_path / "logs" / "a.log"
        path.touch()
        story = Story(path, own, seed=2 + is_bare, shifts=shifts)
        got = near.follow(path)
        story.append()
        got.until(story.content)  # what was rotated away before anybody looked is not read
        for _ in range(ROUNDS):
            story.step()
            got.take()
        got.until(story.content, 60.0)
        assert set(got.events) <= {"appeared", "rotated"}
