"""SwanLab's own copy of a run (``swanlog/run-*/backup.swanlab``): what was logged, as JSON in W&B's framing."""

from __future__ import annotations

from typing import Any, ClassVar

from trainmon.tails.formats.json_text import tolerant
from trainmon.tails.formats.protobuf_wire import WireError
from trainmon.tails.formats.wandb_lines import json_line
from trainmon.tails.formats.wandb_offline import WandbOffline
from trainmon.tails.record import NoteKind

_MAGIC = b":SWL"


class SwanLabBackup(WandbOffline):
    """Records of one run, one value each: ``{"model_type": "Scalar", "data": {"key": "loss", "step": 3, ...}}``."""

    name = "swanlab"
    samples: ClassVar[tuple[bytes, ...]] = (b":SWL\xd6\xe1\x01",)

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether the file begins with SwanLab's magic."""
        return 0.99 if head.startswith(_MAGIC) else 0.0

    def _read(self, data: bytes, place: int) -> None:
        try:
            record = tolerant(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise WireError(str(error)) from error
        told = record.get("data") if isinstance(record, dict) else None
        if not isinstance(told, dict):
            return
        kind = str(record.get("model_type")).lower()
        if kind == "scalar":
            self._read_scalar(told, place)
        elif kind == "footer" and isinstance(told.get("success"), bool):
            is_good = told["success"]
            self._read_rows()
            text = f"the run told SwanLab that it {'finished' if is_good else 'failed'}"
            self._note(NoteKind.FINISHED if is_good else NoteKind.ERROR, text, place)
        elif kind == "experiment":
            self._read_rows()
            self._note(NoteKind.LAUNCH, str(told.get("name") or ""), place)

    def _read_scalar(self, told: dict[str, Any], place: int) -> None:
        metric, key, step = told.get("metric"), told.get("key"), told.get("step")
        if isinstance(metric, dict) and isinstance(key, str) and isinstance(step, int | float):
            row = {"step": step, key: metric.get("data"), "create_time": metric.get("create_time")}
            self._add_row(json_line(row), place)
