"""Rotations while the older parts are looked for: orders of events that no real host can be made to keep to."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

from trainmon.tails.ssh.answer import Entry, Piece, Status
from trainmon.tails.ssh.older import OlderFile
from trainmon.tails.ssh.remote_file import Question

Event = Callable[[], None]


class Folder:
    """Parts of /logs/a.log: name to inode and content; `after_listing` happens once the names were told."""

    def __init__(self, **parts: tuple[int, bytes]) -> None:
        self.parts = {name.replace("_", ".").encode(): part for name, part in parts.items()}
        self.after_listing: Event = lambda: None

    def _status(self, name: bytes) -> Status:
        inode, content = self.parts[name]
        return Status(1, inode, len(content), inode * 1000, 0o100644)  # a later one has the higher inode

    def ask_entries(self, path: bytes, done: Callable[[list[Entry]], None]) -> None:
        entries = [Entry(name, False, self._status(name)) for name in self.parts]
        self.after_listing()
        done(entries)

    def ask_part(self, path: bytes, offset: int, length: int, done: Callable[[Piece], None]) -> None:
        name = path.removeprefix(b"/logs/")
        if name not in self.parts:
            done(Piece(2))
        else:
            done(Piece(0, self._status(name), self.parts[name][1][offset : offset + length]))

    def rest_behind(self, read: bytes, inode: int, present: int) -> bytes | None:
        """What lies there behind `read`, which was read of the file `inode`, now that `present` took its place."""
        found: list[bytes | None] = []
        question = Question(1, len(read), 0, read[:4096], read[-1024:], (1, inode))
        OlderFile("/logs/a.log", question, (1, present), self.ask_part, self.ask_entries, found.append).begin()
        [rest] = found
        return rest


def test_all_parts_in_between_are_read() -> None:
    folder = Folder(a_log_2=(1, b"one\n"), a_log_1=(2, b"two\n"), a_log=(3, b"three\n"))
    assert folder.rest_behind(b"on", 1, 3) == b"e\ntwo\n"


def test_a_present_file_that_was_rotated_meanwhile_is_left_for_the_next_look() -> None:
    folder = Folder(a_log_3=(1, b"one\n"), a_log_2=(2, b"two\n"), a_log_1=(3, b"three\n"), a_log=(4, b"four\n"))
    assert folder.rest_behind(b"on", 1, 2) == b"e\n"
    assert folder.rest_behind(b"", 2, 4) == b"two\nthree\n"


def test_names_that_lead_elsewhere_by_now_are_looked_up_again() -> None:
    folder = Folder(a_log_2=(1, b"one\n"), a_log_1=(2, b"two\n"), a_log=(3, b"three\n"))

    def rotate() -> None:
        folder.after_listing = lambda: None
        for number in (2, 1):
            folder.parts[b"a.log.%d" % (number + 1)] = folder.parts.pop(b"a.log.%d" % number)
        folder.parts[b"a.log.1"] = folder.parts.pop(b"a.log")
        folder.parts[b"a.log"] = (4, b"four\n")

    folder.after_listing = rotate
    assert folder.rest_behind(b"on", 1, 3) == b"e\ntwo\n"


def test_packed_parts_are_unpacked_by_age_and_not_by_when_they_were_packed() -> None:
    """What was read lies in a packed part now, and so do older ones, which were packed later."""
    log, pack = b"step 1\nstep 2\n", gzip.compress
    folder = Folder(
        a_log_4_gz=(9, pack(b"the oldest\n")), a_log_3_gz=(2, pack(log)), a_log_2_gz=(3, pack(b"step 3\n")),
        a_log_1=(4, b"step 4\n"), a_log=(5, b"step 5\n"),
    )  # fmt: skip
    assert folder.rest_behind(b"step 1\n", 1, 5) == b"step 2\nstep 3\nstep 4\n"
    assert folder.rest_behind(log, 1, 5) == b"step 3\nstep 4\n"
    assert folder.rest_behind(b"step 1\nother", 1, 5) is None


def test_a_part_that_is_being_packed_is_read_where_it_is_whole() -> None:
    folder = Folder(a_log_1=(1, b"one\n"), a_log_1_gz=(8, gzip.compress(b"one\n")[:9]), a_log=(9, b"new\n"))
    assert folder.rest_behind(b"on", 1, 9) == b"e\n"


def test_a_long_packed_part_comes_in_pieces() -> None:
    content = random.Random(0).randbytes(3_000_000)
    folder = Folder(a_log_1_gz=(2, gzip.compress(content)), a_log=(9, b"new\n"))
    assert folder.rest_behind(content[:1_234_567], 1, 9) == content[1_234_567:]
    assert folder.rest_behind(content[:1_234_566] + b"?", 1, 9) is None


def test_names_that_never_come_to_rest_end_the_search() -> None:
    folder = Folder(a_log_1=(1, b"one\n"), a_log=(9, b"new\n"))
    inodes = iter(range(100, 200))

    def renew() -> None:
        folder.parts[b"a.log.1"] = (next(inodes), b"other\n")

    folder.after_listing = renew
    assert folder.rest_behind(b"on", 1, 9) is None
