"""What is said to a bare shell and made of its answers, in orders of events that no real one can be made to keep to."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails.ssh.frame import BadAnswer, Frame
from trainmon.tails.ssh.remote_file import Question, RemoteFile
from trainmon.tails.ssh.shell_side import HANGS_AFTER_S, ShellSide

MOUNT = b"/far"


class Dialogue:
    """The side, one file that it watches, and us as the shell there. The file holds `content`."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.content = b""
        self.said: list[bytes] = []
        self.file = RemoteFile(1, "/far/a.log", self, lambda: None)
        self.side = ShellSide(self.said.append, {1: self.file}, self.clock)
        self.side.watch(self.file)
        self.file.connected()

    def ask(self, file: RemoteFile, question: Question) -> None:
        self.side.ask(file, question)

    def grant(self, file: RemoteFile, amount: int) -> None:
        self.side.grant(file, amount)

    def find_older(
        self, file: RemoteFile, question: Question, present: tuple[int, int], done: Callable[[bytes | None], None]
    ) -> None:
        done(None)

    def status(self, mtime: int = 0) -> bytes:
        return b"8 2 %d 17000000%02d.500000000 81a4" % (len(self.content), mtime)

    def tell(self, mtime: int = 0) -> None:
        """The shell saw that the file has changed."""
        self.take("T", 0, b"1 " + self.status(mtime) + b"\n")

    def take(self, kind: str, number: int, payload: bytes) -> None:
        assert self.side.take(Frame(kind, number, payload), self.clock.monotonic())

    def asked(self) -> list[tuple[int, int, int]]:
        """The parts that were asked for since this was called last: number, offset, length."""
        parts = [tuple(map(int, line.split()[1:])) for line in self.said if line.startswith(b"d ")]
        self.said.clear()
        return [(number, offset, length) for number, _, offset, length in parts]

    def read(self, part: tuple[int, int, int]) -> None:
        number, offset, length = part
        self.take("P", number, self.content[offset : offset + length])

    def answer(self) -> None:
        """Whatever is asked for is answered, until nothing is."""
        while parts := self.asked():
            for part in parts:
                self.read(part)
                self.take("k", part[0], self.status())

    def given(self) -> bytes:
        return self.file.take(1 << 20)[0]


@pytest.fixture
def there() -> Dialogue:
    made = Dialogue()
    made.content = b"one\n"
    made.tell()
    made.answer()
    assert made.given() == b"one\n"
    return made


def test_what_was_appended_between_an_empty_part_and_its_status_is_asked_for(there: Dialogue) -> None:
    there.tell(mtime=1)  # touched, no longer than before
    [part] = there.asked()
    there.read(part)
    there.content += b"two\n"
    there.take("k", part[0], there.status(mtime=2))
    there.tell(mtime=2)  # which was known by then
    there.answer()
    assert there.given() == b"two\n"


def test_what_was_appended_between_an_empty_part_and_its_status_and_cannot_be_read_is_said(there: Dialogue) -> None:
    there.tell(mtime=1)
    [part] = there.asked()
    there.read(part)
    there.content += b"two\n"
    there.take("k", part[0], there.status(mtime=2))
    [(number, _, length)] = there.asked()
    there.take("P", number, bytes(length))
    there.take("k", number, b"%d" % errno.EACCES)
    assert there.file.error == errno.EACCES


def test_what_was_put_off_while_a_mount_hung_is_asked_for_when_it_answers(there: Dialogue) -> None:
    there.take("F", 0, b"1\n1 " + MOUNT)
    there.file.set_window(4)
    there.content += b"two\nthree\n"
    there.tell(mtime=1)
    there.answer()
    there.clock.sleep(HANGS_AFTER_S)
    got = there.given()
    assert there.content.startswith(b"one\n" + got)
    there.side.grant(there.file, 100)
    assert there.asked() == []
    there.take("H", 0, MOUNT)
    assert there.asked() != []


@pytest.mark.parametrize("size", [100_000, 4096, 1023, 1])
def test_a_part_in_pieces_is_taken_when_its_end_says_that_the_file_stayed(there: Dialogue, size: int) -> None:
    there.content += b"#" * 2000
    there.tell(mtime=1)
    there.answer()
    assert there.given() == b"#" * 2000
    there.file.set_window(1 << 20)
    there.content += bytes(range(256)) * 200
    there.tell(mtime=2)
    [(number, offset, length)] = there.asked()
    wanted = there.content[offset : offset + length]
    there.take("P", number, b"")  # a header that came alone
    for begin in range(0, length, size):
        there.take("P", number, wanted[begin : begin + size])
    assert there.given() == b""
    there.take("k", number, there.status(mtime=2))
    there.answer()
    data, _, events, _ = there.file.take(1 << 20)
    assert b"one\n" + b"#" * 2000 + data == there.content
    assert not events


@pytest.mark.parametrize("change", [-1, 1])
def test_another_number_of_bytes_than_was_asked_for_is_no_answer(there: Dialogue, change: int) -> None:
    there.content += b"two\n"
    there.tell(mtime=1)
    [(number, _, length)] = there.asked()

    def answer() -> None:
        there.take("P", number, bytes(length // 2))
        there.take("P", number, bytes(length - length // 2 + change))
        there.take("k", number, there.status(mtime=1))

    with pytest.raises(BadAnswer):
        answer()
