"""What fuzzing begins with: every registered format's and dialect's samples, binary files, and heads of real logs.

Real logs are read where they lie (see `tests.conftest.CORPUS`), changed in memory and never stored.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from tests.conftest import CORPUS
from tests.tails.formats import binary_writers as write
from trainmon.tails.formats import registry
from trainmon.tails.formats.dialects import DIALECTS

_HEAD_BYTES = 6 << 10
FINDINGS = sorted((Path(__file__).parent / "findings").glob("*.*"))  # small logs that once broke a reader

WORDS = (
    b'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\nValueError: bad\n',
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
    b"[rank3]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)\n",
    b"saving checkpoint to /ckpt/step_100\nresumed from checkpoint at step 100\n",
    b"slurmstepd: error: *** JOB 7 ON node1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
    b"Epoch 1:  10%|#         | 1/10 [00:01<00:09, loss=2.5]\r"
    b"Epoch 1:  20%|##        | 2/10 [00:02<00:08, loss=2.4]\r\n",
)


def _json_lines() -> bytes:
    rows = [{"step": n, "loss": 2.5 - n / 100, "grad_norm": 0.5, "lr": 1e-3, "_runtime": n * 2.0} for n in range(24)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _table() -> bytes:
    rows = [f"{n},{2.5 - n / 100},0.5,0.001" for n in range(24)]
    return "\n".join(["step,loss,grad_norm,lr", *rows, ""]).encode()


def _events() -> bytes:
    return write.version() + b"".join(
        write.event(n, write.simple("loss", 2.5), write.tensor("lr", 0.1, kind))
        for n, kind in enumerate(("content", "double", "int64", "other"))
    )


def _wandb() -> bytes:
    rows = [write.history(n, loss=2.5, deep={"lr": 0.1, "name": "x"}) for n in range(4)]
    return write.wandb_file([write.run(lr=1e-3), *rows, write.stats(5, gpu=3.0), write.exit_record(1)])


@cache
def own() -> tuple[bytes, ...]:
    """Seeds that lie in the project."""
    found = [sample for name in registry.FORMATS for sample in registry.format_class(name).samples]
    found += [sample for dialect in DIALECTS for sample in dialect.samples]
    found += [_json_lines(), _table(), _events(), _wandb(), *WORDS]
    state = {"global_step": 30, "max_steps": 90, "log_history": [{"step": 10, "loss": 2.5}, {"step": 20, "loss": 2.25}]}
    found += [json.dumps(state).encode(), json.dumps(state, indent=2).encode()]
    return tuple(dict.fromkeys(found))


@cache
def real() -> tuple[bytes, ...]:
    """Heads of real logs; none where there is no corpus."""
    heads = []
    for path in sorted(CORPUS.glob("*/*")) if CORPUS.is_dir() else ():
        if path.is_file() and path.suffix != ".tsv":
            with path.open("rb") as file:
                heads.append(file.read(_HEAD_BYTES))
    return tuple(heads)
