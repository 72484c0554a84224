"""Logs on another host beside ``ssh host tail -F`` and an SFTP poll, over one and the same loopback sshd.

    python -m benchmarks.ssh_reach [--quick]

Prints: milliseconds from an append to its arrival here (p50, p95) with 1, 100 and 300 files; back-fill in MB/s against
``ssh cat``; share of a core on both sides and bytes a second on the wire while 100 files are idle.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.sshd import Sshd, program
from tests.tails.ssh.server import Near, bare_path, options_for, server

COUNTS = (1, 100, 300)
_TICK_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Runs all of it."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="fewer appends, a smaller file")
    options.add_argument("--backfill", action="store_true", help="that part only")
    asked = options.parse_args()
    quick = asked.quick
    home = Path(tempfile.mkdtemp(prefix="tm-"))
    os.environ["XDG_RUNTIME_DIR"] = str(home)
    try:
        with server(home / "s") as far, server(home / "b", path=bare_path(home)) as bare:
            if not asked.backfill:
                latency(far, bare, home, appends=40 if quick else 150)
            backfill(far, bare, home, size=64 << 20 if quick else 256 << 20)
            if asked.backfill:
                return
            for name, each in (("python3", far), ("sh", bare)):
                idle(each, home, name, seconds=5.0 if quick else 20.0)
            idle_peers(far, home, seconds=5.0 if quick else 20.0)
    finally:
        shutil.rmtree(home, ignore_errors=True)


# -- latency -----------------------------------------------------------------------------------------------------


def latency(far: Sshd, bare: Sshd, home: Path, appends: int) -> None:
    """Milliseconds from append to arrival, for every way and number of files."""
    print(f"{'append to arrival, ms':30s} {'files':>6s} {'p50':>8s} {'p95':>8s}")
    for count in COUNTS:
        ways: dict[str, Callable[[list[Path]], Iterator[Callable[[], None]]]] = {
            "trainmon, python3 there": lambda paths: ours(far, paths),
            "trainmon, sh there": lambda paths: ours(bare, paths),
            "ssh host tail -F": lambda paths: tail(far, paths),
            "SFTP stat polling": lambda paths: sftp(far, paths),
        }
        for name, way in ways.items():
            folder = home / f"{count}-{name.replace(' ', '')}"
            folder.mkdir()
            paths = [folder / f"run{number}.log" for number in range(count)]
            for path in paths:
                path.write_bytes(b"begin\n")
            with contextmanager(way)(paths) as wait:
                took = sorted(timed(paths, wait, place) for place in range(appends))
            p50, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
            print(f"{name:30s} {count:6d} {1e3 * p50:8.1f} {1e3 * p95:8.1f}", flush=True)


def timed(paths: list[Path], wait: Callable[[], None], place: int) -> float:
    """One append to one of the files, and how long until it is here."""
    chance = random.Random(place)
    time.sleep(0.02 + chance.random() * 0.06)
    path = chance.choice(paths)
    began = time.perf_counter()
    with path.open("ab") as out:
        out.write(b"step: %d | loss: 2.5\n" % place)
    wait()
    return time.perf_counter() - began


def ours(far: Sshd, paths: list[Path]) -> Iterator[Callable[[], None]]:
    """Through trainmon's own connection."""
    near = Near(options_for(far))
    files = [near.follow(path) for path in paths]
    for got in files:
        got.until(b"begin\n")
    news = threading.Event()
    for got in files:
        got.follower._wake = news.set

    def wait() -> None:
        while True:
            news.wait()
            news.clear()
            came = [got.take() for got in files if got.follower.has_news]  # all of them: no short cut
            if any(came):
                return

    yield wait
    near.close()


def tail(far: Sshd, paths: list[Path]) -> Iterator[Callable[[], None]]:
    """``tail -F`` of all files."""
    command = far.ssh_command("tail", "-n", "1", "-F", *map(str, paths))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    fd = process.stdout.fileno()
    seen = b""
    while seen.count(b"begin") < len(paths):
        seen += os.read(fd, 65536)

    def wait() -> None:
        data = b""
        while b"step" not in data:
            data += os.read(fd, 65536)

    yield wait
    process.kill()
    process.wait()


def sftp(far: Sshd, paths: list[Path]) -> Iterator[Callable[[], None]]:
    """The sftp client, asked for the sizes of all files again and again (``ls -l`` of their directory)."""
    command = [program("sftp", "openssh-client"), "-q", "-F", str(far.config), "-b", "-", Sshd.HOST]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    fd = process.stdout.fileno()

    def sizes() -> bytes:
        assert process.stdin is not None
        process.stdin.write(b"".join(b"ls -l %s\n" % os.fsencode(path) for path in paths) + b"!echo END\n")
        process.stdin.flush()
        data = b""
        while b"\nEND" not in data:
            data += os.read(fd, 65536)
        return b"\n".join(line for line in data.split(b"\n") if b".log" in line and b"sftp>" not in line)

    state = [sizes()]

    def wait() -> None:
        while True:
            now = sizes()
            if now != state[0]:
                state[0] = now
                return
            time.sleep(0.1)

    yield wait
    process.kill()
    process.wait()


# -- throughput --------------------------------------------------------------------------------------------------


def backfill(far: Sshd, bare: Sshd, home: Path, size: int) -> None:
    """A long log read from its start, in turns with ``ssh cat`` of the same."""
    path = home / "long.log"
    chance = random.Random(0)
    with path.open("wb") as out:
        step = 0
        while out.tell() < size:
            block = []
            for _ in range(20_000):
                step += 1
                block.append(b"step: %d | loss: %.6f | grad_norm: %.4f\n" % (step, chance.random(), chance.random()))
            out.write(b"".join(block))
    size = path.stat().st_size
    rates: dict[str, list[float]] = {"ssh cat": [], "trainmon, python3 there": [], "trainmon, sh there": []}
    for _ in range(5):
        rates["ssh cat"].append(size / cat(far, path))
        rates["trainmon, python3 there"].append(size / fill(far, path, size))
        rates["trainmon, sh there"].append(size / fill(bare, path, size))
    base = sorted(rates["ssh cat"])[2]
    print(f"\n{'back-fill of ' + str(size >> 20) + ' MiB':30s} {'MB/s':>8s} {'ratio':>8s}")
    for name, each in rates.items():
        rate = sorted(each)[2]
        print(f"{name:30s} {rate / 1e6:8.1f} {rate / base:8.2f}", flush=True)


def cat(far: Sshd, path: Path) -> float:
    """Seconds that ``ssh cat`` takes once it has begun."""
    process = subprocess.Popen(far.ssh_command("cat", str(path)), stdout=subprocess.PIPE)
    assert process.stdout is not None
    fd = process.stdout.fileno()
    os.read(fd, 1)
    began = time.perf_counter()
    while os.read(fd, 1 << 18):
        pass
    took = time.perf_counter() - began
    process.wait()
    return took


def fill(far: Sshd, path: Path, size: int) -> float:
    """Seconds until a follower has all bytes, once the connection is there."""
    near = Near(options_for(far))
    small = path.with_name("small")
    small.write_bytes(b"begin\n")
    near.follow(small).until(b"begin\n")
    news = threading.Event()
    began = time.perf_counter()
    got = near.follow(path)
    got.follower._wake = news.set
    came = 0
    while came < size:
        update = got.follower.poll(1 << 20)
        came += len(update.data)
        if not update.data:
            news.wait(0.05)
            news.clear()
    took = time.perf_counter() - began
    near.close()
    return took


# -- at rest -----------------------------------------------------------------------------------------------------


def idle(far: Sshd, home: Path, side: str, seconds: float) -> None:
    """What 100 files cost in which nothing happens."""
    paths = idle_files(home)
    print(f"\n{'100 idle files, ' + side + ' there':30s} {'there %':>8s} {'here %':>8s} {'bytes/s':>8s}")
    near = Near(options_for(far))
    files = [near.follow(path) for path in paths]
    for got in files:
        got.until(b"begin\n")
    time.sleep(1.0)
    for label, pause in (("trainmon, just written to", 0.0), ("trainmon, quiet for 31 s", 31.0)):
        time.sleep(pause)
        there = there_s(far)
        here, came = time.process_time(), near.host.read_bytes
        began = time.perf_counter()
        time.sleep(seconds)
        took = time.perf_counter() - began
        there = 100 * (there_s(far) - there) / took
        here = 100 * (time.process_time() - here) / took
        print(f"{label:30s} {there:8.2f} {here:8.2f} {(near.host.read_bytes - came) / took:8.1f}", flush=True)
    near.close()


def idle_files(home: Path) -> list[Path]:
    """A hundred logs of one line."""
    folder = home / "idle"
    folder.mkdir(exist_ok=True)
    paths = [folder / f"run{number}.log" for number in range(100)]
    for path in paths:
        path.write_bytes(b"begin\n")
    return paths


def there_s(far: Sshd) -> float:
    """Seconds of a core that all has used which runs there for a connection, but for sshd itself."""
    pids = [pid for pid in far.connections() if not Path(f"/proc/{pid}/comm").read_text().startswith("sshd")]
    return sum(cpu_s(pid, with_children=True) for pid in pids)


def idle_peers(far: Sshd, home: Path, seconds: float) -> None:
    """The same of the others."""
    paths = idle_files(home)
    with contextmanager(tail)(far, paths):
        pids = [pid for pid in far.connections() if Path(f"/proc/{pid}/comm").read_text().strip() == "tail"]
        used, began = sum(map(cpu_s, pids)), time.perf_counter()
        time.sleep(seconds)
        used = 100 * (sum(map(cpu_s, pids)) - used) / (time.perf_counter() - began)
        print(f"{'ssh host tail -F':30s} {used:8.2f} {'-':>8s} {0.0:8.1f}")
    with contextmanager(sftp)(far, paths) as wait:
        stop = threading.Event()
        thread = threading.Thread(target=wait, daemon=True)
        servers = [pid for pid in far.connections() if Path(f"/proc/{pid}/comm").read_text().startswith("sshd")]
        used, began = sum(map(cpu_s, servers)), time.perf_counter()
        thread.start()
        stop.wait(seconds)
        used = 100 * (sum(map(cpu_s, servers)) - used) / (time.perf_counter() - began)
        print(f"{'SFTP stat polling':30s} {used:8.2f} {'-':>8s} {'-':>8s}")
        paths[0].write_bytes(b"begin\nend\n")
        thread.join(5.0)


def cpu_s(pid: int, *, with_children: bool = False) -> float:
    """Seconds of a core that a process has used, and those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_children else 13])) / _TICK_S


if __name__ == "__main__":
    main()
