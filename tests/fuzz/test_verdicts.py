"""What is judged of a damaged log: no exception, always the document's shape, nothing that later lines undo."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import fuzz
from tests.fuzz.mutation import changed_from, logs
from tests.monitor.test_check_json import document, holds_to_the_shapes
from trainmon.monitor.alerts import AlertBook
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import Episode, Finding
from trainmon.tails.clock import SystemClock
from trainmon.tails.formats import registry
from trainmon.tails.ingest import Ingest
from trainmon.tails.logpane import LogPane
from trainmon.tails.record import Parsed

STYLES = (
    '{{"step": {step}, "loss": {loss:.4f}, "grad_norm": {grad:.3f}, "lr": {lr:.2e}}}',
    "iteration {step:8d}/  900 | lm loss: {loss:.6E} | grad norm: {grad:.3f} | learning rate: {lr:.3E} |",
    "step {step}: train loss {loss:.4f}, grad_norm {grad:.3f}, lr {lr:.2e}",
)


def run(style: str, seed: int, count: int) -> bytes:
    """A run with a spike, a non-finite value, a shift and a restart at places that `seed` chooses."""
    rng = random.Random(seed)
    spike, bad, shift, restart = (rng.randrange(count // 4, count) for _ in range(4))
    lines = []
    for n in range(count):
        step = n if n < restart else n - 20
        loss = 3 - n / count + rng.gauss(0, 0.02) + (4 if n == spike else 0) + (1.5 if n > shift else 0)
        grad = rng.lognormvariate(-1, 0.1) * (30 if n == spike else 1)
        lines.append(style.format(step=step, loss=loss if n != bad else float("nan"), grad=grad, lr=1e-3))
    return "\n".join([*lines, ""]).encode()


RUNS = tuple(run(style, seed, 240) for seed, style in enumerate(STYLES))


class RecordingBook(AlertBook):
    """Keeps what opened, check by check (how those of several checks are mixed is no promise)."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: dict[str, list[str]] = {}

    def apply(self, check: str, finding: Finding) -> Episode | None:
        episode = super().apply(check, finding)
        if finding.action == "open" and episode is not None:
            self.opened.setdefault(check, []).append(episode.id)
        return episode


def opened(data: bytes) -> tuple[dict[str, list[str]], list[tuple[int, str, str]]]:
    """What a live reading of `data` has opened so far, and the events that the log told."""
    ingest = Ingest("log", registry.detect, LogPane("log", 10))
    engine = RunEngine("run", "log", clock=SystemClock())
    book = engine._state.core.book = RecordingBook()
    parsed = Parsed() if not data else ingest.feed(data, is_at_end=True)
    engine.feed("log", parsed)
    return book.opened, [(note.line_no, note.kind.value, note.text) for note in parsed.notes]


@fuzz(25, share=0.05)
@given(changed_from(RUNS, most=4), st.integers(0, 1 << 16), st.booleans())
def test_what_a_part_of_a_log_opens_the_whole_opens_first(data: bytes, place: int, is_at_a_line: bool) -> None:
    end = place % (len(data) + 1)
    part = data[: data.rfind(b"\n", 0, end) + 1] if is_at_a_line else data[:end]
    first, notes = opened(part)
    whole, all_notes = opened(data)
    for check, episodes in first.items():
        assert whole.get(check, [])[: len(episodes)] == episodes, check
    assert all_notes[: len(notes)] == notes


@fuzz(40, share=0.1)
@given(
    st.one_of(logs(), changed_from(RUNS, most=4)),
    st.sampled_from(["m.jsonl", "train.log", "x.csv", "trainer_state.json"]),
)
def test_check_gives_its_document_whatever_is_in_the_log(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        found = document(str(path))
    holds_to_the_shapes(found)
    assert "internal error" not in json.dumps(found)
    assert "failed:" not in " ".join(check["what"] for run in found["runs"] for check in run["checks"])  # type: ignore[attr-defined]
