"""What the peers' own readers say of an event store. Run by the interpreter that has them installed:

``PEERS_PYTHON -m benchmarks.event_peers WAY PATH [OUT]``; nothing of trainmon is imported. The values go to OUT (JSON
lines of source, tag, steps, values, wall times), the seconds that reading took to standard output.

``accumulator``: TensorBoard's EventAccumulator, which keeps every scalar. ``loader``: its EventFileLoader, which parses
each event and keeps none. ``server``: its fast loader (Rust), which keeps a sample of each tag; processor time until it
rests. ``datastore``: W&B's own reader of .wandb files and protobuf messages (in its package up to
0.19).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import Any

REST_S = 1.5
Series = dict[tuple[str, str], tuple[list[float], list[float], list[float]]]


def by_accumulator(path: Path) -> Series:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    out: Series = {}
    for file in sorted(path.rglob("*tfevents*")) if path.is_dir() else [path]:
        events = EventAccumulator(
            str(file), size_guidance=dict.fromkeys(("scalars", "tensors"), 0), purge_orphaned_data=False
        )
        events.Reload()
        for tag in events.Tags()["scalars"]:
            found = events.Scalars(tag)
            out[str(file), tag] = ([e.step for e in found], [e.value for e in found], [e.wall_time for e in found])
        for tag in events.Tags()["tensors"]:
            kept = [(e.step, make_ndarray(e.tensor_proto), e.wall_time) for e in events.Tensors(tag)]
            if all(value.size == 1 and value.dtype.kind in "fiu" for _, value, _ in kept):
                steps, values, walls = zip(*kept, strict=True)
                out[str(file), tag] = (list(steps), [float(value.item()) for value in values], list(walls))
    return out


def by_loader(path: Path) -> Series:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    for file in sorted(path.rglob("*tfevents*")) if path.is_dir() else [path]:
        for _ in EventFileLoader(str(file)).Load():
            pass
    return {}


def by_server(path: Path) -> float:
    """Processor seconds, of all its threads, that the data server takes to load `path`."""
    import tensorboard_data_server

    command = [tensorboard_data_server.server_binary(), "--logdir", str(path), "--reload", "once", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    used, since, began = 0.0, monotonic(), monotonic()
    try:
        while monotonic() - since < REST_S or monotonic() - began < 2 * REST_S:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            now = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            if now > used:
                used, since = now, monotonic()
            sleep(0.05)
    finally:
        process.kill()
        process.wait()
    return used


def by_datastore(path: Path) -> Series:
    from wandb.proto import wandb_internal_pb2 as messages
    from wandb.sdk.internal.datastore import DataStore

    out: Series = {}
    for file in sorted(path.rglob("*.wandb")) if path.is_dir() else [path]:
        store = DataStore()
        store.open_for_scan(str(file))
        while (data := store.scan_data()) is not None:
            record = messages.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                _add_history(out, str(file), record.history)
    return out


def _add_history(out: Series, file: str, history: Any) -> None:
    values = {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in history.item}
    step, wall = values.pop("_step", history.step.num), values.get("_timestamp", 0.0)
    for key, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            series = out.setdefault((file, key), ([], [], []))
            for column, one in zip(series, (step, value, wall), strict=True):
                column.append(one)


WAYS = {"accumulator": by_accumulator, "loader": by_loader, "datastore": by_datastore}


if __name__ == "__main__":
    way, path, *out = sys.argv[1:]
    began = process_time()
    if way == "server":
        print(by_server(Path(path)))
        sys.exit()
    found = WAYS[way](Path(path))
    print(process_time() - began)
    if out:
        with Path(out[0]).open("w") as target:
            for (source, tag), (steps, values, walls) in found.items():
                target.write(json.dumps([source, tag, steps, values, walls]) + "\n")
