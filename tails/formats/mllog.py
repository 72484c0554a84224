"""MLPerf's ``:::MLLOG {...}`` records, brought into the shape of others."""

from __future__ import annotations

from typing import Any

_STEPS = ("step", "samples_count")


def is_mllog(record: dict[str, Any]) -> bool:
    """Whether `record` has the shape of an MLLOG record."""
    return "event_type" in record and "key" in record and isinstance(record.get("metadata"), dict)


def unwrap(record: dict[str, Any]) -> dict[str, Any] | None:
    """The plain record that an MLLOG record stands for; None when it says nothing about the training.

    >>> unwrap({"time_ms": 1, "event_type": "POINT_IN_TIME", "key": "loss", "value": 2.5, "metadata": {"step": 8}})
    {'loss': 2.5, 'metadata/step': 8, 'time_ms': 1}
    """
    key, value, metadata = str(record["key"]), record.get("value"), record["metadata"]
    step_key = next((name for name in (*_STEPS, "epoch_num") if name in metadata), None)
    place = {"time_ms": record.get("time_ms")}
    if step_key is not None:
        # Samples counted and the "step" of the trainers' own statistics are the same counter.
        name = "metadata/step" if step_key in _STEPS else f"metadata/{step_key}"
        place = {name: metadata[step_key], **place}
    if key == "run_start":
        return {"event": "run_start", **place}
    if key == "run_stop":
        status = metadata.get("status")
        return {"event": "run_complete" if status == "success" else "run_aborted", "message": f"{key}: {status}", **place}
    if isinstance(value, dict):
        return {**value, **place}
    if isinstance(value, bool) or value is None:
        return None
    if step_key is None:
        return {"event": "metadata", key: value}
    return {key: value, **place} if isinstance(value, int | float) else None
