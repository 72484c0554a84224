"""The reader that is sent to a host with python3 (3.5 or newer) and runs there, with the standard library alone.

It reads commands from stdin, a line each, and writes packets to stdout (`frame` has both forms). It only reads files,
writes none, and ends when its stdin ends or when it has heard nothing for `LEASE_S`.

    w FILE PATH                     stat PATH from now on
    u FILE                          forget it
    r FILE TURN OFFSET CREDIT HEAD_LEN HEAD_CRC TAIL_LEN TAIL_CRC
                                    send what follows OFFSET, if the first HEAD_LEN bytes and the TAIL_LEN bytes before
                                    OFFSET are those; go on as it grows, for CREDIT bytes
    g FILE BYTES                    more credit
    k NUMBER PATH OFFSET LENGTH     one part of a file; from its end where OFFSET is negative
    l NUMBER PATH                   a directory
    b NUMBER PATTERN                what a pattern matches
    n NUMBER PATH                   what begins with a path: its rotated parts, as B and b
    x NUMBER SECONDS WORD...        run one of `PROGRAMS`
    p NUMBER                        answer

    S FILE     "errno" | "dev ino size mtime_ns mode" (mode in hexadecimal)
    D FILE     "turn dev ino size mtime_ns offset raw_length z|-" newline bytes
    X FILE     "turn dev ino size mtime_ns" newline: not the content that was asked for; then its first bytes
    K NUMBER   "errno" | "dev ino size mtime_ns mode" newline bytes
    L NUMBER   links as 0 and 1, newline, "mode dev ino size mtime" each a line, empty line, names apart by /
    M NUMBER   "errno dev ino": end of the directory
    B NUMBER   one match; b NUMBER "errno": end of them
    R NUMBER   "status length_of_stdout" newline stdout stderr
    h NUMBER   "wall_clock": an answer to p, and a sign of life
    Q 0        "seconds mount": a file system that has not answered for so long; 0 when it does again

What lies on a file system whose server may not answer is read by a thread of its own for each of them, so that one
that hangs holds up its own files only.
"""

# It must run where nothing of this project is, in old versions and in a hurry: hence the style.
# ruff: noqa: D101, D102, D103, PTH100, PTH114, PTH115, PTH116, PTH118, PTH120, PTH123, PTH207, PTH208, TID251, SIM105, UP022, B905

import bisect
import collections
import errno
import glob
import os
import re
import select
import signal
import stat
import sys
import time

try:
    import zlib
except ImportError:
    zlib = None  # type: ignore[assignment]

LEASE_S = 60
SILENT_S = 5.0
HEARTBEAT_S = 2.0
HEAD = 4096
TAIL = 1024
CHUNK = 256 << 10
HOT_S = 30.0
MAX_LISTED = 100000
MAX_MATCHES = 10001
MAX_PART = 1 << 20
MAX_HELD = 200
GRACE_S = 10.0
SPAN = 4 << 20
PROGRAMS = (b"squeue", b"scontrol", b"sacct", b"sinfo")
BLIND = re.compile("nfs|lustre|gpfs|beegfs|cifs|smb|ceph|9p|afs|panfs|weka|gluster|virtiofs|fuse|orangefs|pvfs")
ESCAPE = re.compile(rb"\\0([0-7]{3})")
if False:  # for the type checker only: importing it takes longer than all the rest
    import typing  # noqa: F401

# A round of polls may take this share of a core, files that grew lately and the others counted apart.
HOT_SHARE = 0.02
COLD_SHARE = 0.004
LEAST_S = 0.06
MOST_S = 2.0


def unescape(word):
    # type: (bytes) -> bytes
    return ESCAPE.sub(lambda match: bytes([int(match.group(1), 8) & 255]), word)


def crc(data):
    # type: (bytes) -> int
    if zlib is None:
        import binascii

        return binascii.crc32(data) & 0xFFFFFFFF
    return zlib.crc32(data) & 0xFFFFFFFF


LOCK = []  # type: list[typing.Any]


def use_threads():
    # type: () -> None
    import threading

    if not LOCK:
        LOCK.append(threading.Lock())


def send(kind, number, payload):
    # type: (bytes, int, bytes) -> None
    if LOCK:  # a program that was asked for answers from a thread of its own
        with LOCK[0]:
            write(kind, number, payload)
    else:
        write(kind, number, payload)


def write(kind, number, payload):
    # type: (bytes, int, bytes) -> None
    view = memoryview(kind + b" %08x %08x\n" % (number, len(payload)) + payload)
    while len(view):
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            select.select([], [1], [])


def told(status):
    # type: (os.stat_result) -> bytes
    now = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return b"%d %d %d %d" % (now[0] & (2**64 - 1), now[1], now[2], max(now[3], 0))


def blind_mounts():
    # type: () -> list[bytes]
    points = []
    try:
        with open("/proc/self/mountinfo", "rb") as table:
            for line in table:
                left, _, right = line.partition(b" - ")
                if BLIND.match(right.split(b" ")[0].decode("ascii", "replace")):
                    points.append(unescape(left.split(b" ")[4].replace(b"\\", b"\\0")).rstrip(b"/") + b"/")
    except (OSError, IndexError):
        pass
    return points


def unfolded(path, points):
    # type: (bytes, list[bytes]) -> bytes
    """Links followed up to the first mount that may hang, and no further: following them there would hang too."""
    path = os.path.abspath(path)
    place = b""
    rest = path.split(b"/")[1:]
    links = 0
    while rest:
        place += b"/" + rest.pop(0)
        if place + b"/" in points:
            break
        try:
            leads_to = os.readlink(place)
        except OSError:
            continue
        links += 1
        if links > 40:
            break
        whole = os.path.normpath(os.path.join(os.path.dirname(place), leads_to, *rest))
        place, rest = b"", whole.split(b"/")[1:]
    return b"/".join([place, *rest])


class File:
    def __init__(self, number, path, is_blind):
        # type: (int, bytes, bool) -> None
        self.number = number
        self.path = path
        self.is_blind = is_blind
        self.told = b""
        self.turn = -1
        self.offset = 0
        self.credit = 0
        self.head = (0, 0)
        self.tail = (0, 0)
        self.is_armed = False
        self.wants_look = True
        self.fd = -1
        self.id = None  # type: tuple[int, int] | None
        self.lost_at = None  # type: float | None
        self.changed_at = 0.0
        self.is_behind = False
        self.recheck_at = 0.0
        self.key = None  # type: tuple[int, int, int, int, int] | None

    def close(self):
        # type: () -> None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Reader:
    """Reads files; the one without a `mount` listens to stdin, and hands on what is about a mount that may hang."""

    def __init__(self, points, mount=b""):
        # type: (list[bytes], bytes) -> None
        self.mount = mount
        self.others = {}  # type: dict[bytes, Reader]
        self.place_of = {}  # type: dict[bytes, bytes]
        self.silent = set()  # type: set[bytes]
        self.lines = collections.deque()  # type: collections.deque[bytes]
        self.wake_in, self.wake_out = os.pipe() if mount else (0, -1)
        self.seen_at = time.monotonic()
        if mount:
            os.set_blocking(self.wake_in, False)
            os.set_blocking(self.wake_out, False)
        self.files = {}  # type: dict[int, File]
        self.rest = b""
        self.points = points
        self.hot_due = self.cold_due = self.beat_due = 0.0
        self.pipe_is_packed = False
        self.rates = {False: 0.0, True: 0.0}
        self.span = 0
        self.spans = 0
        self.span_began = 0.0
        self.span_idle = True
        self.listed = (None, [])  # type: tuple[tuple[bytes, int, int, int] | None, list[bytes]]

    # -- the loop

    def run(self):
        # type: () -> None
        if not self.mount:
            self.beat(0)
        while True:
            behind = [file for file in self.files.values() if file.is_behind and file.credit > 0]
            now = self.seen_at = time.monotonic()
            due = min(self.hot_due, self.cold_due, now + MOST_S if self.mount else self.beat_due)
            wait = 0.0 if behind else max(due - now, 0.0)
            if select.select([self.wake_in], [], [], wait)[0] and not (self.told_to() if self.mount else self.listen()):
                return
            now = time.monotonic()
            if now >= self.beat_due and not self.mount:
                self.beat(0)
                self.tell_of_others(now)
            self.poll(now)
            if not behind:
                self.span_idle = True
            for file in behind:
                if file.number in self.files:
                    self.look(file, now)

    def beat(self, number):
        # type: (int) -> None
        self.beat_due = time.monotonic() + HEARTBEAT_S
        send(b"h", number, b"%.6f" % time.time())

    def tell_of_others(self, now):
        # type: (float) -> None
        """Says which mounts do not answer."""
        for other in self.others.values():
            if now - other.seen_at >= SILENT_S:
                self.silent.add(other.mount)
                send(b"Q", 0, b"%d %s" % (now - other.seen_at, other.mount.rstrip(b"/")))
            elif other.mount in self.silent:
                self.silent.discard(other.mount)
                send(b"Q", 0, b"0 " + other.mount.rstrip(b"/"))

    def poll(self, now):
        # type: (float) -> None
        if now >= self.hot_due:
            used = time.thread_time() if hasattr(time, "thread_time") else time.process_time()
            count = 0
            for file in list(self.files.values()):
                if now - file.changed_at < HOT_S or file.lost_at is not None:
                    self.glance(file, now)
                    count += 1
            used = (time.thread_time() if hasattr(time, "thread_time") else time.process_time()) - used
            # Sending is no part of a round's cost: it would slow down the rounds when most comes.
            used = min(used, 1e-5 * count + 5e-5)
            least = 0.5 if self.points and all(file.is_blind for file in self.files.values()) else LEAST_S
            self.hot_due = now + min(max(used / HOT_SHARE, least), MOST_S) if count else now + MOST_S
        if now >= self.cold_due:
            used = time.process_time()
            cold = [file for file in self.files.values() if now - file.changed_at >= HOT_S and file.lost_at is None]
            for file in cold:
                self.glance(file, now)
            used = min(time.process_time() - used, 1e-5 * len(cold) + 5e-5)
            if any(file.changed_at >= now for file in cold):
                self.hot_due = min(self.hot_due, now + LEAST_S)
            self.cold_due = now + min(max(used / COLD_SHARE, LEAST_S), MOST_S)

    # -- one file

    def stat(self, file):
        # type: (File) -> os.stat_result
        if not file.is_blind:
            return os.stat(file.path)
        status = os.stat(file.path)  # never opens what is no file; opening is what refreshes attributes over NFS
        if not stat.S_ISREG(status.st_mode):
            return status
        fd = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def glance(self, file, now):
        # type: (File, float) -> None
        """As `look`, for next to nothing while nothing has changed."""
        is_due = file.recheck_at and now >= file.recheck_at
        if not (file.is_blind or file.wants_look or file.is_behind or is_due or file.lost_at is not None):
            try:
                status = os.stat(file.path)
                key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_dev, status.st_mode)
            except OSError:
                key = None
            if key is not None and key == file.key:
                return
            file.key = key
        self.look(file, now)

    def look(self, file, now):
        # type: (File, float) -> None
        status = None
        try:
            status = self.stat(file)
            words = told(status) + b" %x" % status.st_mode
        except OSError as error:
            words = b"%d" % (error.errno or errno.EIO)
        is_lost = file.fd >= 0 and (status is None or (status.st_dev, status.st_ino) != file.id)
        if is_lost and self.rest_of(file, status):
            return
        if file.recheck_at and now >= file.recheck_at:
            file.recheck_at, file.wants_look = 0.0, True
        is_behind = file.is_behind and file.credit > 0
        if words == file.told and not file.wants_look and not is_behind:
            return
        try:
            if status is not None and stat.S_ISREG(status.st_mode) and file.is_armed:
                if words != file.told:
                    file.changed_at = now
                self.serve(file)
            elif words != file.told:
                file.changed_at = now
                send(b"S", file.number, words)
            file.told = words
        except OSError as error:
            file.close()
            file.is_behind = False
            file.key = None
            words = b"%d" % (error.errno or errno.EIO)
            if words != file.told:
                send(b"S", file.number, words)
            file.told = words
        file.wants_look = False

    def rest_of(self, file, status):
        # type: (File, os.stat_result | None) -> bool
        """Sends what a writer still adds to a file that was moved away or deleted; True while there may be more."""
        now = time.monotonic()
        try:
            size = os.fstat(file.fd).st_size
            if file.is_armed and size > file.offset:
                if file.credit > 0:
                    self.serve_open(file)
                file.lost_at = now
                return file.is_armed
        except OSError:
            file.close()
        if file.lost_at is None:
            file.lost_at = now
        if (status is not None and status.st_size > 0) or now - file.lost_at >= GRACE_S:
            file.close()
        if file.fd < 0:
            file.lost_at = None
            file.wants_look = True
            return False
        if status is None and file.told != b"%d" % errno.ENOENT:
            file.told = b"%d" % errno.ENOENT
            send(b"S", file.number, file.told)
        return True

    def serve(self, file):
        # type: (File) -> None
        if file.fd < 0:
            file.fd = os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | getattr(os, "O_CLOEXEC", 0))
        self.serve_open(file)
        if sum(1 for each in self.files.values() if each.fd >= 0) > MAX_HELD or file.is_blind:
            file.close()

    def serve_open(self, file):
        # type: (File) -> None
        status = os.fstat(file.fd)
        file.id = (status.st_dev, status.st_ino)
        tail = b""
        if file.head[0] or file.tail[0] or file.offset > status.st_size:
            head = os.pread(file.fd, file.head[0], 0)
            tail = os.pread(file.fd, file.tail[0], file.offset - file.tail[0])
            is_same = (len(head), crc(head)) == file.head and (len(tail), crc(tail)) == file.tail
            if status.st_size < file.offset or not is_same:
                first = os.pread(file.fd, HEAD, 0)
                send(b"X", file.number, b"%d " % file.turn + told(status) + b"\n" + first)
                file.is_armed = file.is_behind = False
                file.close()
                return
        if not file.credit and file.offset < status.st_size:
            file.is_behind = True
            send(b"S", file.number, told(status) + b" %x" % status.st_mode)
            return
        if status.st_mtime_ns % 1000000 == 0 and time.time() - status.st_mtime < 2.0:
            file.recheck_at = time.monotonic() + 2.2  # time stamps are coarse here: a change may not show in them
        data = b""
        if file.credit > 0:
            data = os.pread(file.fd, min(file.credit, CHUNK), file.offset)
            if len(data) >= 4096 and not data[0] and not data.strip(b"\0"):
                data, tail = self.skip_hole(file, data, tail)
        at = file.offset
        if at < HEAD and file.head[0] == at and data:
            file.head = self.grown(file.head, data[: HEAD - at])
        if data or not tail:
            tail = (tail + data[-TAIL:])[-TAIL:]
        file.tail = (len(tail), crc(tail))
        file.offset += len(data)
        file.credit -= len(data)
        file.is_behind = bool(data) and file.offset < status.st_size
        self.send_data(file, status, at, data)

    def grown(self, head, data):
        # type: (tuple[int, int], bytes) -> tuple[int, int]
        if zlib is not None:
            return head[0] + len(data), zlib.crc32(data, head[1]) & 0xFFFFFFFF
        import binascii

        return head[0] + len(data), binascii.crc32(data, head[1]) & 0xFFFFFFFF

    def skip_hole(self, file, data, tail):
        # type: (File, bytes, bytes) -> tuple[bytes, bytes]
        try:
            start = os.lseek(file.fd, file.offset, os.SEEK_DATA)
        except OSError as error:
            return (b"", tail) if error.errno == errno.ENXIO else (data, tail)
        except AttributeError:
            return data, tail
        if start <= file.offset:
            return data, tail
        file.offset = start
        return os.pread(file.fd, min(file.credit, CHUNK), start), b""

    # -- sending, compressed when that is faster

    def send_data(self, file, status, at, data):
        # type: (File, os.stat_result, int, bytes) -> None
        is_packed = self.pipe_is_packed and zlib is not None and len(data) >= 16384
        body = zlib.compress(data, 1) if is_packed else data
        words = b"%d " % file.turn + told(status) + b" %d %d %c\n" % (at, len(data), b"z" if is_packed else b"-")
        send(b"D", file.number, words + body)
        if len(data) < CHUNK // 2 or zlib is None:
            return
        now = time.monotonic()
        if self.span_idle:
            self.span, self.span_began, self.span_idle = 0, now, False
            return
        self.span += len(data)
        if self.span >= SPAN or (self.span >= CHUNK and now - self.span_began > 1.0):
            self.judge_span(now)

    def judge_span(self, now):
        # type: (float) -> None
        """Measures how fast a span went, packed or not; every sixteenth goes the other way, to see."""
        self.rates[self.pipe_is_packed] = self.span / max(now - self.span_began, 1e-6)
        self.spans += 1
        is_faster_packed = self.rates[True] > self.rates[False]
        if not self.rates[True]:
            # A link that takes this much is not waited for.
            is_faster_packed = self.rates[False] < 30e6
        self.pipe_is_packed = is_faster_packed != (self.spans % 16 == 0 and bool(self.rates[True]))
        self.span, self.span_began = 0, now

    # -- commands

    def listen(self):
        # type: () -> bool
        try:
            data = os.read(0, 65536)
        except BlockingIOError:
            return True
        if not data:
            return False
        signal.alarm(LEASE_S)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        return all(self.obey(line) for line in lines)

    def told_to(self):
        # type: () -> bool
        """What the one that listens has handed on."""
        try:
            os.read(self.wake_in, 4096)
        except BlockingIOError:
            pass
        while self.lines:
            self.obey(self.lines.popleft())
        return True

    def obey(self, line):
        # type: (bytes) -> bool
        words = line.split(b" ")
        command = getattr(self, "do_" + words[0].decode("ascii", "replace"), None)
        if command is None:
            return False
        place = b"" if self.mount or not self.points else self.place_for(words)
        if place:
            self.hand_on(place, line)
        else:
            command(*words[1:])
        return True

    def place_for(self, words):
        # type: (list[bytes]) -> bytes
        """The mount that may hang and that a command is about; "" where there is none."""
        if words[0] in (b"u", b"r", b"g"):
            return self.place_of.pop(words[1], b"") if words[0] == b"u" else self.place_of.get(words[1], b"")
        if words[0] not in (b"w", b"k", b"l", b"b", b"n"):
            return b""
        name = unescape(words[2])
        if words[0] == b"b":
            name = re.split(rb"[*?\[]", name)[0]
            name = name[: name.rfind(b"/") + 1] or b"."
        real = unfolded(name, self.points)
        place = max((point for point in self.points if (real + b"/").startswith(point)), key=len, default=b"")
        if words[0] == b"w" and place:
            self.place_of[words[1]] = place
        if not place and words[0] in (b"l", b"b"):  # what lies below is looked at too
            below = [point for point in self.points if point.startswith(real.rstrip(b"/") + b"/")]
            if words[0] == b"l":
                below = [point for point in below if os.path.dirname(point.rstrip(b"/")) == real]
            place = min(below, default=b"")
        return place

    def hand_on(self, place, line):
        # type: (bytes, bytes) -> None
        import threading

        use_threads()
        other = self.others.get(place)
        if other is None:
            other = self.others[place] = Reader(self.points, place)
            thread = threading.Thread(target=other.run)
            thread.daemon = True
            thread.start()
        other.lines.append(line)
        try:
            os.write(other.wake_out, b"w")
        except BlockingIOError:
            pass

    def do_w(self, number, path):
        # type: (bytes, bytes) -> None
        name = unescape(path)
        file = File(int(number), name, bool(self.mount))
        file.changed_at = time.monotonic()
        self.files[int(number)] = file
        self.hot_due = 0.0

    def do_u(self, number):
        # type: (bytes) -> None
        file = self.files.pop(int(number), None)
        if file is not None:
            file.close()

    def do_r(self, number, turn, offset, credit, head_len, head_crc, tail_len, tail_crc):
        # type: (bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes) -> None
        file = self.files.get(int(number))
        if file is None:
            return
        file.turn, file.offset, file.credit = int(turn), int(offset), int(credit)
        file.head, file.tail = (int(head_len), int(head_crc)), (int(tail_len), int(tail_crc))
        file.is_armed = file.wants_look = True
        self.look(file, time.monotonic())

    def do_g(self, number, amount):
        # type: (bytes, bytes) -> None
        file = self.files.get(int(number))
        if file is not None:
            file.credit += int(amount)
            file.wants_look = file.wants_look or file.is_behind

    def do_p(self, number):
        # type: (bytes) -> None
        self.beat(int(number))

    def do_k(self, number, path, offset, length):
        # type: (bytes, bytes, bytes, bytes) -> None
        try:
            name = unescape(path)
            status = os.stat(name)
            words = told(status) + b" %x\n" % status.st_mode
            if stat.S_ISREG(status.st_mode):
                fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
                try:
                    status = os.fstat(fd)
                    words = told(status) + b" %x\n" % status.st_mode
                    at = int(offset) if int(offset) >= 0 else max(status.st_size + int(offset), 0)
                    words += os.pread(fd, min(int(length), MAX_PART), at)
                finally:
                    os.close(fd)
        except OSError as error:
            words = b"%d" % (error.errno or errno.EIO)
        send(b"K", int(number), words)

    def do_l(self, number, path):
        # type: (bytes, bytes) -> None
        name = unescape(path)
        code, here = 0, (0, 0)
        part = []  # type: list[tuple[bytes, bytes, bytes]]
        try:
            status = os.stat(name)
            here = (status.st_dev, status.st_ino)
            for place, child in enumerate(os.listdir(name)):
                if place >= MAX_LISTED:
                    break
                full = os.path.join(name, child)
                try:
                    is_link = os.path.islink(full)
                    status = os.stat(full)
                except OSError:
                    continue
                words = b"%x " % status.st_mode + told(status)
                part.append((b"1" if is_link else b"0", words, child))
                if len(part) >= 500:
                    self.send_part(int(number), part)
        except OSError as error:
            code = error.errno or errno.EIO
        if part:
            self.send_part(int(number), part)
        send(b"M", int(number), b"%d %d %d" % (code, here[0] & (2**64 - 1), here[1]))

    def send_part(self, number, part):
        # type: (int, list[tuple[bytes, bytes, bytes]]) -> None
        links, stats, names = zip(*part)
        send(b"L", number, b"".join(links) + b"\n" + b"\n".join(stats) + b"\n\n" + b"/".join(names))
        del part[:]

    def do_b(self, number, pattern):
        # type: (bytes, bytes) -> None
        for place, match in enumerate(glob.iglob(unescape(pattern), recursive=True)):
            if place >= MAX_MATCHES:
                break
            send(b"B", int(number), match)
        send(b"b", int(number), b"0")

    def do_n(self, number, path):
        # type: (bytes, bytes) -> None
        folder, base = os.path.split(unescape(path))
        names = self.names_in(folder or b".")
        place = bisect.bisect_left(names, base)
        while place < len(names) and names[place].startswith(base):
            send(b"B", int(number), os.path.join(folder, names[place]))
            place += 1
        send(b"b", int(number), b"0")

    def names_in(self, folder):
        # type: (bytes) -> list[bytes]
        """Sorted; those of many logs in one directory are read once."""
        try:
            status = os.stat(folder)
            seen = (folder, status.st_dev, status.st_ino, status.st_mtime_ns)
            if self.listed[0] != seen:
                is_settled = abs(time.time() - status.st_mtime) > 1.0  # else a change may not show in its time stamp
                self.listed = (seen if is_settled else None, sorted(os.listdir(folder)))
        except OSError:
            return []
        return self.listed[1]

    def do_x(self, number, seconds, *words):
        # type: (bytes, bytes, bytes) -> None
        import threading

        use_threads()
        command = [unescape(word) for word in words]
        thread = threading.Thread(target=run_program, args=(int(number), int(seconds), command))
        thread.daemon = True
        thread.start()


def run_program(number, seconds, command):
    # type: (int, int, list[bytes]) -> None
    import subprocess

    if not command or command[0] not in PROGRAMS:
        send(b"R", number, b"126 0\n")
        return
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds
        )
        status, out, err = done.returncode & 255, done.stdout[:MAX_PART], done.stderr[:65536]
    except subprocess.TimeoutExpired:
        status, out, err = 124, b"", b""
    except OSError:
        status, out, err = 127, b"", b""
    send(b"R", number, b"%d %d\n" % (status, len(out)) + out + err)


if __name__ == "__main__":
    signal.alarm(LEASE_S)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.nice(5)
    except OSError:
        pass
    try:
        Reader(blind_mounts()).run()
    except (BrokenPipeError, ConnectionError):
        sys.exit(0)
