"""InfluxDB's line protocol: ``train,run=a loss=2.3,lr=1e-4,step=10i 1700000000000000000``."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.record import TimeKind
from trainmon.tails.steps import says_eval, step_key_of, words_of

_PAIR = r"[^=,\s]{1,80}=(?:\"[^\"]{0,200}\"|[^,\s\"]{1,80})"
_LINE = re.compile(
    rf"(?P<what>[A-Za-z_][\w./-]{{0,80}})(?P<tags>(?:,{_PAIR}){{0,40}}) (?P<fields>{_PAIR}(?:,{_PAIR}){{0,1000}})"
    r" (?P<time>\d{10}(?:\d{3}|\d{6}|\d{9})?)\s*"
)
_ITEM = re.compile(rf"([^=,\s]{{1,80}})=({NUMBER})[iu]?(?=,|$)")
_PLAIN = frozenset(["train", "training", "trainer", "run", "metrics", "metric", "stats", "progress", "llm", "model"])
_RANKS = ("rank", "global_rank", "worker", "gpu")
_DIGITS_OF_SECONDS = 10


class Influx(Dialect):
    """One record a line. The measurement is put before the names of its fields where it says more than "training"."""

    name = "influx line protocol"
    tokens = (b"loss=", b"reward=", b"lr=", b"step=")
    samples = (
        b"train,run=a,host=n1 loss=3.25,lr=1e-4,step=10i 1700000000000000000\n"
        b"train,run=a,host=n1 loss=3.125,lr=1e-4,step=20i 1700000020000000000\n",
    )

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        match = _LINE.fullmatch(line.text) if line.text[-1:].isdigit() else None
        if match is None:
            return False
        values: dict[str, float | None] = {
            key: float(text) for key, text in _ITEM.findall(match["fields"]) if _is_plain(text)
        }
        tags = dict(item.split("=", 1) for item in match["tags"].split(",")[1:])
        step, key = None, step_key_of(values)
        if key is not None:
            step = values.pop(key)
        else:
            key = next((name for name in ("global_step", "step", "iteration") if tags.get(name, "").isdigit()), "")
            step = float(tags[key]) if key else None
        if not any(map(METRIC.search, values)):
            return False
        words = words_of(match["what"])
        if says_eval(match["what"]):
            values = {f"eval/{name}": value for name, value in values.items()}
        elif not words <= _PLAIN:
            values = {f"{match['what']}/{name}": value for name, value in values.items()}
        rank = next((tags[name] for name in _RANKS if tags.get(name, "").isdigit()), line.prefix.rank)
        digits = match["time"]
        time = int(digits) / 10 ** (len(digits) - _DIGITS_OF_SECONDS)
        prefix = replace(line.prefix, time=time, time_kind=TimeKind.ABSOLUTE, is_clock=False, rank=rank)
        sink.emit(Reading(values, step, key, dialect=self.name), replace(line, prefix=prefix))
        return True


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
