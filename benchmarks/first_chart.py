"""Time until a big log is drawn and until all of it is read and judged, against ``json.loads`` and ``list.append``.

The whole program in a terminal, its start included: `N` records of five keys (100,000 are 10 MB).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.check_million import PEER
from benchmarks.timing import TRAINMON, Screen, interleaved, run, write_records

WARM_UP = 30  # values that are not judged: the walk of triage says how many were
ANY_CURVE = b"\xe2\xa3"  # how the dense Braille characters begin


def drawn(log: Path, mark: bytes) -> float:
    """Seconds until `mark` was written to the terminal."""
    with Screen((*TRAINMON, "watch", str(log)), log.parent) as screen:
        moment = screen.read_for(120, mark)
        if moment is None:
            raise SystemExit(f"{mark!r} was never drawn")
        return moment - screen.began


def main() -> None:
    counts = [int(word) for word in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    with tempfile.TemporaryDirectory() as directory:
        for count in counts:
            log = Path(directory) / f"{count}.jsonl"
            write_records(log, count)
            peer = (sys.executable, "-c", PEER, str(log))
            found = interleaved(
                {
                    "first chart": lambda log=log: drawn(log, ANY_CURVE),
                    "all read": lambda log=log, count=count: drawn(log, f"{count - WARM_UP:,}".encode()),
                    "peer": lambda peer=peer: run(peer).wall_s,
                },
                rounds=3 if count >= 1_000_000 else 5,
            )
            print(f"{count:,} records, {log.stat().st_size / 1e6:.0f} MB")
            for name, seconds in found.items():
                print(f"  {name:12s} {seconds:6.2f} s {seconds / found['peer']:5.2f}x", flush=True)
            log.unlink()


if __name__ == "__main__":
    main()
