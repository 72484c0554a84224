"""What the reader for a host with python3 does with a file, and how it runs a program: the first half of what is sent.

`link` puts this before `far_python`, which see. What comes of a file is compressed when that is faster.
"""

# It must run where nothing of this project is, in old versions and in a hurry: hence the style.
# ruff: noqa: UP022, SIM105, D101, D102, D103, TID251

import errno
import os
import re
import select
import stat
import time

try:
    import zlib
except ImportError:
    zlib = None  # type: ignore[assignment]

HEAD = 4096
TAIL = 1024
CHUNK = 256 << 10
HOT_S = 30.0
MAX_PART = 1 << 20
MAX_HELD = 200
GRACE_S = 10.0
SPAN = 4 << 20
PROGRAMS = (b"squeue", b"scontrol", b"sacct", b"sinfo")
BLIND = re.compile("nfs|lustre|gpfs|beegfs|cifs|smb|ceph|9p|afs|panfs|weka|gluster|virtiofs|fuse|orangefs|pvfs")
ESCAPE = re.compile(rb"\\0([0-7]{3})")
if False:  # for the type checker only: importing it takes longer than all the rest
    import typing  # noqa: F401


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


def send(kind, number, payload, body=b""):
    # type: (bytes, int, bytes, bytes) -> None
    if LOCK:  # a program that was asked for answers from a thread of its own
        with LOCK[0]:
            write(kind, number, payload, body)
    else:
        write(kind, number, payload, body)


def write(kind, number, payload, body):
    # type: (bytes, int, bytes, bytes) -> None
    # What is long is not copied to stand behind its header.
    rest = [memoryview(kind + b" %08x %08x\n" % (number, len(payload) + len(body)) + payload), memoryview(body)]
    while rest:
        try:
            done = os.writev(1, rest)
        except BlockingIOError:
            select.select([], [1], [])
            continue
        while rest and done >= len(rest[0]):
            done -= len(rest.pop(0))
        if rest:
            rest[0] = rest[0][done:]


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
            fd, self.fd = self.fd, -1
            try:
                os.close(fd)
            except OSError:  # a mount that was taken away: it was only read from
                pass


class Files:
    """The files that are watched, and how what is new of them is sent."""

    def __init__(self):
        # type: () -> None
        self.files = {}  # type: dict[int, File]
        self.pipe_is_packed = False
        self.rates = {False: 0.0, True: 0.0}
        self.span = 0
        self.spans = 0
        self.span_began = 0.0
        self.span_idle = True

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
        send(b"D", file.number, words, body)
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
