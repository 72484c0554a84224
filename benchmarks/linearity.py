"""How the time to read a log grows with its size: every reader at 1, 2 and 4 times a size, whatever the content.

Processor time from bytes to records, notes and facts (`tails.ingest`), in pieces as the intake gives them; the least of
`ROUNDS`, the sizes in turn. Linear reading takes 2 and 4 times as long; `WORSE` and above is told, and the exit status
is then 1.

    python -m benchmarks.linearity [WORD...]    only the kinds whose name has one of the words
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from time import process_time
from typing import Final

from trainmon.tails.formats import registry
from trainmon.tails.ingest import Ingest
from trainmon.tails.logpane import LogPane

ROUNDS: Final = 3
WORSE: Final = 6.0  # times as long for four times as much: 4 is linear, 16 quadratic
PIECE: Final = 1 << 20
Make = Callable[[int], bytes]


def lines(count: int, write: Callable[[int], object]) -> bytes:
    return b"".join(str(write(number)).encode() + b"\n" for number in range(count))


def objects(count: int, write: Callable[[int], object], end: str = "\n") -> bytes:
    return "".join(json.dumps(write(number)) + end for number in range(count)).encode()


def table(header: str, count: int, write: Callable[[int], str]) -> bytes:
    return header.encode() + b"\n" + lines(count, write)


def record(step: int) -> dict[str, object]:
    return {"step": step, "loss": 2.5 + 1 / (1 + step), "lr": 0.001, "grad_norm": 0.5}


def megatron(step: int) -> str:
    return (
        f" iteration {step:8}/ 5000000 | consumed samples: {step * 8:12} | elapsed time per iteration (ms): 123.4 |"
        f" learning rate: 1.000E-04 | lm loss: {2 + 1 / (1 + step):.6E} | grad norm: 0.512 |"
    )


def frame(step: int) -> str:
    return f"\r{step % 100:3}%|{'#' * (step % 10):10}| {step}/900000 [00:01<00:02, 9.9it/s, loss=2.{step % 1000:03}]"


def nested(depth: int) -> bytes:
    """A bomb: objects in objects, lists in lists."""
    return b'{"step": 1, "loss": 2.5}\n' + b'{"a":' * depth + b"1" + b"}" * depth + b"\n" + b"[" * depth + b"\n"


def document(count: int) -> bytes:
    history = ",\n".join(json.dumps(record(step), indent=2) for step in range(count))
    return f'{{\n"max_steps": {count},\n"log_history": [\n{history}\n]\n}}\n'.encode()


def columnar(count: int) -> bytes:
    return json.dumps({"lm loss": {"values": {str(step): 2.5 for step in range(count)}}}, indent=1).encode()


def runs_by_name(count: int) -> bytes:
    return json.dumps({f"run{n}": {"loss": [2.5, 2.25, *range(count // 100)]} for n in range(90)}).encode()


KINDS: Final[dict[str, tuple[int, Make]]] = {
    "jsonl flat": (20_000, lambda n: objects(n, record)),
    "jsonl nested": (8_000, lambda n: objects(n, lambda i: {"step": i, "train": {"loss": 2.5, "opt": {"lr": 0.1}}})),
    "jsonl a new key every record": (4_000, lambda n: objects(n, lambda i: {"step": i, "loss": 2.5, f"key{i}": i})),
    "jsonl 2,000 keys": (60, lambda n: objects(n, lambda i: {"step": i, **{f"k{k}": k + i for k in range(2000)}})),
    "jsonl shapes by turns": (4_000, lambda n: objects(n, lambda i: {"step": i, f"a{i % 7}": 1.0, "loss": 2.5})),
    "jsonl long form": (8_000, lambda n: objects(n, lambda i: {"name": f"m{i % 9}", "step": i // 9, "value": i})),
    "jsonl 50 runs in turn": (15_000, lambda n: objects(n, lambda i: {"run": f"r{i % 50}", **record(i // 50)})),
    "jsonl another run every 20": (9_000, lambda n: objects(n, lambda i: {"run": f"r{i // 20}", **record(i % 20)})),
    "jsonl another name every record": (9_000, lambda n: objects(n, lambda i: {"run": f"r{i}", **record(i)})),
    "jsonl words that vary": (9_000, lambda n: objects(n, lambda i: {**record(i), **{f"w{k}": f"{i}" for k in "abc"}})),
    "jsonl NaN by turns": (9_000, lambda n: objects(n, lambda i: {"step": i, "loss": float("nan") if i % 3 else 2.5})),
    "jsonl torn every third": (6_000, lambda n: lines(n, lambda i: json.dumps(record(i))[: None if i % 3 else 30])),
    "glued objects on one line": (8_000, lambda n: objects(n, record, "") + b"\n"),
    "glued, then torn": (8_000, lambda n: objects(n, record, "") + b'{"step": 3, "lo\n'),
    "nested bomb": (200_000, nested),
    "braces": (400_000, lambda n: objects(2, record) + b"{" * n + b"\n" + b'{"a"' * (n // 4) + b"\n"),
    "a line of one text": (1 << 20, lambda n: objects(3, record) + b'{"step": 9, "text": "' + b"a\\n" * n + b'"}\n'),
    "a line that is no record": (1 << 20, lambda n: objects(3, record) + b"x = 1, " * (n // 4) + b"\n"),
    "json log_history": (6_000, document),
    "json log_history, torn": (6_000, lambda n: document(n)[:-40]),
    "json one after another": (3_000, lambda n: "\n".join(json.dumps(record(i), indent=2) for i in range(n)).encode()),
    "json columnar": (60_000, columnar),
    "json runs by name": (90_000, runs_by_name),
    "csv": (30_000, lambda n: table("step,loss,lr", n, lambda i: f"{i},2.5,0.1")),
    "csv 5,000 columns": (
        30,
        lambda n: table("step," + ",".join(f"c{k}" for k in range(5000)), n, lambda i: f"{i}" + ",1.5" * 5000),
    ),
    "csv 50 runs in turn": (20_000, lambda n: table("run,step,loss", n, lambda i: f"r{i % 50},{i // 50},2.5")),
    "csv another label every row": (20_000, lambda n: table("task,step,acc", n, lambda i: f"t{i},{i},2.5")),
    "csv long form": (10_000, lambda n: table("metric,step,value", n, lambda i: f"m{i % 40},{i // 40},2.5")),
    "csv ragged": (20_000, lambda n: table("step,loss,lr", n, lambda i: f"{i},2.5,0.1" + ",7" * (i % 5))),
    "csv header again": (20_000, lambda n: table("step,loss", n, lambda i: f"{i},2.5" if i % 10 else "step,loss")),
    "csv open quotes": (20_000, lambda n: table("step,loss,note", n, lambda i: f'{i},2.5,"{"" if i % 7 else "x"}')),
    "csv one long row": (200_000, lambda n: table("step,loss", 3, lambda i: f"{i},2.5") + b"1," * n + b"\n"),
    "stdout megatron": (4_000, lambda n: lines(n, megatron)),
    "stdout dict": (6_000, lambda n: lines(n, lambda i: {"loss": 2.5, "grad_norm": 0.5, "epoch": i / 1000})),
    "stdout pairs": (8_000, lambda n: lines(n, lambda i: f"step {i} | loss 2.{i % 1000:03} | lr 1e-3 | {i} tok/s")),
    "stdout prefixes": (5_000, lambda n: lines(n, lambda i: f"2026-01-01 00:00:00 [rank{i % 8}]: step {i} loss 2.5")),
    "stdout ever new shapes": (1_500, lambda n: lines(n, lambda i: f"step {i} loss 2.5 " + f"k{i}=1 " * (i % 5))),
    "stdout noise": (10_000, lambda n: lines(n, lambda i: f"INFO worker {i} said something about shard {i * 7} again")),
    "stdout tracebacks": (1_000, lambda n: b'Traceback (most recent call last):\n  File "x", line 1\nKeyError\n' * n),
    "tqdm frames on one line": (12_000, lambda n: b"".join(frame(i).encode() for i in range(n)) + b"\n"),
    "tqdm frames, ANSI": (5_000, lambda n: b"".join(b"\x1b[A\x1b[32m" + frame(i).encode() for i in range(n)) + b"\n"),
    "one line of pairs": (6_000, lambda n: b"step 1 " + b"a=1 " * n + b"\n"),
    "one line of brackets": (100_000, lambda n: b"step 1 loss 2 " + b"[(" * n + b"\n"),
    "one line of digits": (400_000, lambda n: b"step 1 loss 2." + b"1" * n + b"\n"),
}  # fmt: skip


def read(data: bytes) -> int:
    """The records of `data`, read as a growing file is."""
    ingest = Ingest("linearity", registry.detect, LogPane("linearity", 100))
    for at in range(0, len(data), PIECE):
        ingest.feed(data[at : at + PIECE], is_at_end=at + PIECE >= len(data))
    if ingest.is_document and ingest.format is not None:
        return ingest.format.parse(data).records  # type: ignore[attr-defined]
    ingest.finish(is_final=True)
    return ingest.records


def measure(make: Make, size: int) -> tuple[list[float], int]:
    """The processor time of each size, and the records of the largest."""
    logs = [make(size * times) for times in (1, 2, 4)]
    best = [float("inf")] * len(logs)
    records = 0
    for _ in range(ROUNDS):
        for place, data in enumerate(logs):
            began = process_time()
            records = read(data)
            best[place] = min(best[place], process_time() - began)
    return best, records


def chosen(words: list[str]) -> Iterator[tuple[str, int, Make]]:
    for name, (size, make) in KINDS.items():
        if not words or any(word in name for word in words):
            yield name, size, make


def main(words: list[str]) -> int:
    print(f"{'kind':34} {'1x s':>7} {'2x':>6} {'4x':>6} {'MB at 4x':>9} {'records':>8}")
    worse = 0
    for name, size, make in chosen(words):
        (once, twice, four), records = measure(make, size)
        mark = "  <- not linear" if four / once >= WORSE else ""
        worse += bool(mark)
        mb = len(make(4 * size)) / 1e6
        print(f"{name:34} {once:7.3f} {twice / once:6.2f} {four / once:6.2f} {mb:9.2f} {records:8}{mark}", flush=True)
    print(f"{worse} kinds take {WORSE:g} times as long or more for four times as much")
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
