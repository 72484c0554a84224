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
# ruff: noqa: D102, TID251, SIM105, B905, F403, F405

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

from trainmon.tails.ssh.far_files import *  # left out of what is sent: it stands before

LEASE_S = 60
SILENT_S = 5.0
HEARTBEAT_S = 2.0
MAX_LISTED = 100000
MAX_MATCHES = 10001
# A round of polls may take this share of a core, files that grew lately and the others counted apart.
HOT_SHARE = 0.02
COLD_SHARE = 0.004
LEAST_S = 0.06
MOST_S = 2.0
if False:  # for the type checker only: importing it takes longer than all the rest
    import typing  # noqa: F401


class Reader(Files):
    """Reads files; the one without a `mount` listens to stdin, and hands on what is about a mount that may hang."""

    def __init__(self, points, mount=b""):
        # type: (list[bytes], bytes) -> None
        Files.__init__(self)
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
        self.rest = b""
        self.points = points
        self.table = -1
        try:
            self.table = -1 if mount else os.open("/proc/self/mountinfo", os.O_RDONLY)
        except OSError:
            pass
        self.hot_due = self.cold_due = self.beat_due = 0.0
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

    def run_aside(self):
        # type: () -> None
        """In a thread: what goes wrong ends the whole program, and is said as where there is no thread."""
        try:
            self.run()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)

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
        if not self.mount and words[0] in (b"w", b"l", b"b", b"n"):
            self.renew_points()
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
            place = min(below, default=b"") or self.linked(real)
        return place

    def linked(self, folder):
        # type: (bytes) -> bytes
        """A mount that may hang and that a link in the directory leads to."""
        try:
            links = [entry.path for entry in os.scandir(folder) if entry.is_symlink()]
        except OSError:
            return b""
        leads_to = [unfolded(link, self.points) + b"/" for link in links]
        return next((point for point in self.points for real in leads_to if real.startswith(point)), b"")

    def renew_points(self):
        # type: () -> None
        """Mounts that came since: the kernel says when the table is another one."""
        if self.table >= 0 and select.select([], [], [self.table], 0)[2]:
            self.points[:] = blind_mounts()

    def hand_on(self, place, line):
        # type: (bytes, bytes) -> None
        import threading

        use_threads()
        other = self.others.get(place)
        if other is None:
            other = self.others[place] = Reader(self.points, place)
            thread = threading.Thread(target=other.run_aside)
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
