"""What is said to a reader in POSIX sh, and what its packets mean for the files that are watched.

It is asked for the status of all files in turns, and for the parts that are new. Where tail can, it says unasked that
something has grown; then the turns are few. Some parts are on their way at once, so that a long history keeps the link
busy; each begins with some of what came before it, which shows whether the file goes on.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable

from trainmon.tails.clock import Clock
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.ssh.answer import Piece, Status, number, silence_of, stat_or_errno
from trainmon.tails.ssh.frame import BadAnswer, Frame, word
from trainmon.tails.ssh.remote_file import Question, RemoteFile
from trainmon.tails.ssh.shell_parts import Parts

PING_S = 2.0
TICK_BUSY_S = 0.1  # while something is written, and where a look is quick
TICK_HOT_S = 0.25
BUSY_FOR_S = 5.0
TICK_COLD_S = 2.0
TICK_FOLLOWED_S = 6.0  # where tail tells of what grows, and nothing does
HOT_FOR_S = 30.0
HANGS_AFTER_S = 5.0  # a mount that did not say for so long that it answers
_FOLLOW_AGAIN_S = 1.0
_MOUNTS_AGAIN_S = 60.0
_AGAIN_S = 1.0  # what could not be read is tried again
_LOOK_SHARE = 0.2  # of the time between two looks that one may take
_OVERLAP_BYTES = 1024
_PART_BYTES = (16 << 20) - _OVERLAP_BYTES  # each costs some processes there, which start while nothing comes
WINDOW_BYTES = 32 << 20  # on its way at most, of a link that is so fast: one part comes while the next is asked for
_PARTS_ON_WAY = 3
_HEAD_BYTES = 4096
_SECOND_NS = 1_000_000_000
_TICKS = 0x60000000  # numbers of ticks begin here
_MOST_MOUNTS = 1000


class _Polled:
    """What is kept of one file. Everything up to `asked` was asked for, up to `offset` has come."""

    def __init__(self) -> None:
        self.told: Status | int | None = None
        self.question: Question | None = None
        self.credit = 0
        self.offset = 0
        self.asked = 0
        self.tail = b""
        self.head_is_checked = False
        self.on_way = 0
        self.epoch = 0  # answers to what was asked in an earlier one are no longer wanted
        self.is_wanted = False
        self.check_again_at = 0.0
        self.mount: bytes | None = None

    def begin(self, question: Question) -> None:
        """Takes up what is asked for now."""
        self.question, self.credit = question, question.credit
        self.offset, self.tail = question.offset, question.tail[-_OVERLAP_BYTES:]
        self.head_is_checked = not question.head
        self.is_wanted = True
        self.epoch, self.asked, self.on_way = self.epoch + 1, self.offset, 0

    def drop(self) -> None:
        """Forgets what is on its way."""
        self.credit += self.asked - self.offset
        self.epoch, self.asked, self.on_way = self.epoch + 1, self.offset, 0


@dataclass(frozen=True, slots=True)
class _Part:
    """What was asked for: `overlap` bytes before `at`, and `count` from there on, while `told` was its status."""

    at: int
    overlap: int
    count: int
    epoch: int
    told: Status


class ShellSide:
    """A reader in POSIX sh: it is asked, in turns and only for what changed."""

    def __init__(self, send: Callable[[bytes], None], files: dict[int, RemoteFile], clock: Clock) -> None:
        self._send = send
        self._files = files
        self._clock = clock
        self._polled: dict[int, _Polled] = {}
        self._known: dict[int, Status | int] = {}
        self._parts = Parts()
        self._tick = _TICKS
        self._tick_at = self._ping_at = self._follow_at = 0.0
        self._is_ticking = False
        self._ticked_at = 0.0
        self._took_s = TICK_HOT_S
        self._changed_at = clock.monotonic()
        self._is_to_follow = True
        self._is_followed = False
        self._heard: dict[bytes, float] = {}  # when a mount that may hang answered last
        self._silent_since: dict[bytes, float] = {}  # mounts that keep questions waiting

    def watch(self, file: RemoteFile) -> None:
        """Looks after the file from now on."""
        self._polled[file.number] = _Polled()
        self._send(b"w %d %s\n" % (file.number, word(file.path)))
        self._tick_at = 0.0
        self._is_to_follow, self._is_followed = True, False

    def unwatch(self, file: RemoteFile) -> None:
        """Forgets it."""
        self._polled.pop(file.number, None)
        self._known.pop(file.number, None)
        self._send(b"u %d\n" % file.number)
        self._is_to_follow = True

    def ask(self, file: RemoteFile, question: Question) -> None:
        """Asks for what follows an offset."""
        polled = self._polled.get(file.number)
        if polled is not None:
            polled.begin(question)
            self._serve(file, polled)

    def grant(self, file: RemoteFile, amount: int) -> None:
        """Lets it send more."""
        polled = self._polled.get(file.number)
        if polled is not None:
            polled.credit += amount
            self._serve(file, polled)

    def hanging(self, now: float) -> dict[bytes, float]:
        """The mounts there that do not answer, and for how long, s."""
        silent = {mount: now - at for mount, at in self._heard.items() if now - at >= HANGS_AFTER_S}
        return {mount: now - at for mount, at in self._silent_since.items()} | silent

    def take(self, frame: Frame, now: float) -> bool:
        """Takes a packet; False when it is not about a watched file."""
        if frame.kind == "T" and frame.number in (0, self._tick):
            if frame.number:
                self._is_ticking = False
                self._took_s = now - self._ticked_at
            self._learn(frame.payload, now)
            return True
        if frame.kind == "Q":
            mount, silent_s = silence_of(frame.payload)
            self._silent_since.pop(mount, None)
            if silent_s and len(self._silent_since) < _MOST_MOUNTS:
                self._silent_since[mount] = now - silent_s
            return True
        if frame.kind in "FH" and frame.number == 0:
            self._learn_mounts(frame, now)
            return True
        return self._parts.take(frame)

    def beat(self, now: float) -> float:
        """Does what is due; when there is something to do next."""
        for place, polled in self._polled.items():
            if polled.check_again_at and now >= polled.check_again_at and place in self._files:
                polled.check_again_at, polled.is_wanted = 0.0, True
                polled.told = self._known.get(place, polled.told)
                self._serve(self._files[place], polled)
        if now >= self._ping_at:
            self._send(b"p 0\n" if self._ping_at else b"p 0 clock\n")
            self._ping_at = now + PING_S
        if self._heard and now >= self._follow_at + _MOUNTS_AGAIN_S and self.hanging(now):
            self._is_to_follow = True  # it may have been taken away
        if self._is_to_follow and now >= self._follow_at:
            self._is_to_follow, self._follow_at = False, now + _FOLLOW_AGAIN_S
            self._send(b"f 0\n")
        if now >= self._tick_at and not self._is_ticking:
            self._is_ticking = True
            self._ticked_at = now
            self._tick_at = now + self._pace_s(now - self._changed_at)
            self._tick += 1
            self._send(b"t %d\n" % self._tick)
        return min(self._ping_at, self._tick_at if not self._is_ticking else now + TICK_COLD_S)

    def _pace_s(self, still_s: float) -> float:
        """Seconds between two looks, when nothing has changed for `still_s`."""
        if self._is_followed:
            return TICK_COLD_S if still_s < HOT_FOR_S else TICK_FOLLOWED_S
        if still_s >= HOT_FOR_S:
            return TICK_COLD_S
        if still_s >= BUSY_FOR_S:
            return TICK_HOT_S
        return min(max(self._took_s / _LOOK_SHARE, TICK_BUSY_S), TICK_HOT_S)

    # -- what changed ------------------------------------------------------------------------------------------

    def _learn(self, payload: bytes, now: float) -> None:
        changed = set()
        if payload != b"=":
            for line in payload.split(b"\n"):
                place, _, rest = line.partition(b" ")
                if place:
                    changed.add(number(place))
                    self._known[number(place)] = stat_or_errno(rest) if rest else errno.ENOENT
        for watched, polled in list(self._polled.items()):
            if watched not in changed and not polled.is_wanted:
                continue
            file, answer = self._files.get(watched), self._known.get(watched)
            if file is None or answer is None or (answer == polled.told and not polled.is_wanted):
                continue
            if answer != polled.told:
                self._changed_at = now
                self._follow_anew(polled.told, answer)
            polled.told = answer
            if isinstance(answer, int):
                file.answer_errno(answer)
            elif stat.S_ISREG(answer.mode or 0):
                polled.is_wanted = polled.question is not None
                self._serve(file, polled)
            else:
                file.answer_stat(answer)

    def _follow_anew(self, before: Status | int | None, now: Status | int) -> None:
        """Has tail follow the file that is there now, where it is another one."""
        if isinstance(now, Status) and not (isinstance(before, Status) and before.identity == now.identity):
            self._is_to_follow, self._is_followed = True, False

    def _learn_mounts(self, frame: Frame, now: float) -> None:
        """F: whether what grows is told of, and which files lie on mounts that may hang. H: one of those answers."""
        if frame.kind == "H":
            if frame.payload in self._heard:
                was_hanging = now - self._heard[frame.payload] >= HANGS_AFTER_S
                self._heard[frame.payload] = now
                if was_hanging:
                    self._learn(b"=", now)  # asks for what was put off
            return
        first, *lines = frame.payload.split(b"\n")
        self._is_followed = first == b"1" and not self._is_to_follow
        heard: dict[bytes, float] = {}
        for line in lines:
            place, _, mount = line.partition(b" ")
            polled = self._polled.get(number(place))
            if polled is not None and len(heard) < _MOST_MOUNTS:
                polled.mount = mount
                heard[mount] = self._heard.get(mount, now)
        if first == b"1" or lines or not self._heard:
            for polled in self._polled.values():
                polled.mount = polled.mount if polled.mount in heard else None
            self._heard = heard

    # -- parts -------------------------------------------------------------------------------------------------

    def _serve(self, file: RemoteFile, polled: _Polled) -> None:
        """Asks for the next parts, with some of what is known before them, which show whether it goes on."""
        question, told = polled.question, polled.told
        if question is None or not isinstance(told, Status):
            return
        if self._is_on_hanging(polled):  # asking would hold up all other files
            polled.is_wanted = True
            return
        if told.size < polled.offset or not polled.head_is_checked:
            if not polled.on_way:
                polled.on_way, polled.is_wanted = 1, False
                self._ask_head(file, polled, self._head_came)
            return
        while polled.on_way < _PARTS_ON_WAY:
            count = min(polled.credit, _PART_BYTES, max(told.size - polled.asked, 0))
            if not count and not (polled.is_wanted and not polled.on_way):
                return
            if not count and not polled.credit:
                file.answer_stat(told)
                return
            polled.is_wanted = False
            before = min(_OVERLAP_BYTES, len(polled.tail) + polled.asked - polled.offset)
            self._ask_part(file, polled, _Part(polled.asked, before, count, polled.epoch, told))

    def _is_on_hanging(self, polled: _Polled) -> bool:
        if polled.mount is None:
            return False
        return self._clock.monotonic() - self._heard[polled.mount] >= HANGS_AFTER_S

    def _ask_part(self, file: RemoteFile, polled: _Polled, part: _Part) -> None:
        polled.asked += part.count
        polled.credit -= part.count
        polled.on_way += 1
        length = part.overlap + part.count
        place = self._parts.expect(length, lambda piece, data: self._part_came(file, polled, part, piece, data))
        where = (place, file.number, part.at - part.overlap, length)
        self._send(b"d %d %d %d %d\n" % where)

    def _ask_head(
        self, file: RemoteFile, polled: _Polled, then: Callable[[RemoteFile, _Polled, Question, Piece], None]
    ) -> None:
        question, epoch = polled.question, polled.epoch
        assert question is not None

        def came(piece: Piece, _: list[bytes]) -> None:
            if epoch == polled.epoch and question is not None:
                polled.on_way = 0
                if self._was_read(file, polled, piece):
                    then(file, polled, question, piece)

        self._send(b"k %d %s 0 %d\n" % (self._parts.expect(0, came), word(file.path), _HEAD_BYTES))

    def _head_came(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> None:
        assert piece.status is not None
        if piece.status.size < polled.offset or piece.data[: len(question.head)] != question.head:
            self._differs(file, polled, question, piece)
            return
        polled.told = piece.status
        polled.head_is_checked = polled.is_wanted = True
        self._serve(file, polled)

    def _part_came(self, file: RemoteFile, polled: _Polled, part: _Part, piece: Piece, data: list[bytes]) -> None:
        if part.epoch != polled.epoch or polled.question is None:
            return
        polled.on_way -= 1
        if not self._was_read(file, polled, piece):
            return
        question, status, overlap = polled.question, piece.status, part.overlap
        assert status is not None
        if sum(map(len, data)) != overlap + part.count:
            raise BadAnswer("it sent another number of bytes than was asked for")
        before = polled.tail[len(polled.tail) - overlap :] if overlap else b""
        if status.size < polled.offset or data[0][:overlap] != before:
            polled.drop()
            polled.head_is_checked, polled.is_wanted, polled.on_way = False, True, 1
            self._ask_head(file, polled, self._differs)
            return
        if status.size < part.at + part.count:  # it shrank while it was read: once more, next turn
            self._again(polled)
            return
        if status.identity != part.told.identity and question.head:
            polled.drop()  # another file whose end looks the same
            polled.head_is_checked, polled.told, polled.is_wanted = False, status, True
            self._serve(file, polled)
            return
        data[0] = data[0][overlap:]
        polled.offset += part.count
        for each in data:
            polled.tail = (polled.tail + each[-_OVERLAP_BYTES:])[-_OVERLAP_BYTES:]
        polled.told = status
        if part.count and status.mtime_ns % _SECOND_NS == 0:  # coarse time stamps: a change may not show in them
            polled.check_again_at = self._clock.monotonic() + 1.5
        at = part.at
        for each in data if not part.count else filter(None, data):
            file.answer_data(question.turn, status, at, each)
            at += len(each)
        if polled.question is question:  # also when nothing came: it may have grown between the reading and the status
            self._serve(file, polled)

    def _differs(self, file: RemoteFile, polled: _Polled, question: Question, piece: Piece) -> None:
        assert piece.status is not None
        polled.question = None
        file.answer_differs(question.turn, piece.status, piece.data, self._clock.monotonic())

    def _again(self, polled: _Polled) -> None:
        polled.drop()
        polled.told, polled.is_wanted = None, True

    def _was_read(self, file: RemoteFile, polled: _Polled, piece: Piece) -> bool:
        """Whether there is an answer of a file; what else there is, is said or asked again."""
        if piece.error in (0, errno.EAGAIN):
            if not piece.error and piece.status is not None and stat.S_ISREG(piece.status.mode or 0):
                return True
            self._again(polled)
            return False
        polled.drop()
        polled.told = piece.error
        polled.check_again_at = self._clock.monotonic() + _AGAIN_S
        file.answer_errno(piece.error)
        return False
