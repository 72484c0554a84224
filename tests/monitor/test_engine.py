"""The engine: the same results however records come in, several sources, faulty checks, hostile input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.logs import GRAD, LOSS, Jumps, Line, engine, feed_cut, parsed, plain_state, read, train
from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.fold import KEPT_IN_ALL, stands_for
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import Block, NoteKind, Parsed

VALUE = st.sampled_from([3.0, 2.5, 2.0, 9.0, 20.0, math.nan, math.inf, None])


@st.composite
def a_log(draw: st.DrawFn) -> list[Line]:
    """Stretches of steps with restarts, repeats, late rows, validation, notes, facts and odd values."""
    lines: list[Line] = []
    step = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(
            st.sampled_from(["run", "run", "back", "again", "late", "eval", "note", "fact", "stepless", "other"])
        )
        if kind == "run":
            for _ in range(draw(st.integers(1, 12))):
                step += 1
                values = {"loss": draw(VALUE), "grad_norm": draw(VALUE)}
                lines.append(Line(values, float(step), time=1e9 + 3.5 * len(lines)))
        elif kind == "back":
            step = max(step - draw(st.integers(1, 30)), 0)
        elif kind == "again" and lines:
            lines.append(lines[-1])
        elif kind == "late" and step > 2:
            lines.append(train(float(step - 1), 2.2))
        elif kind == "eval":
            lines.append(Line({"val_loss": draw(VALUE)}, draw(st.sampled_from([None, float(step), 1.0]))))
        elif kind == "note":
            lines.append(Line(note=draw(st.sampled_from([NoteKind.LAUNCH, NoteKind.RESUMED, NoteKind.SKIPPED_STEP]))))
        elif kind == "fact":
            lines.append(Line(fact=("clip_threshold", draw(st.sampled_from([1.0, 2.25])))))
        elif kind == "stepless":
            lines.append(Line({"loss": draw(VALUE)}))
        elif kind == "other":
            lines.append(Line({"gpu/thing": draw(VALUE), "tokens_per_second": 100.0}, float(step)))
    return lines


@settings(max_examples=200, deadline=None)
@given(lines=a_log(), cuts=st.lists(st.integers(0, 60), max_size=8), settling=st.booleans())
def test_any_cut_gives_the_same(lines: list[Line], cuts: Sequence[int], settling: bool) -> None:
    whole, cut = engine(), engine()
    feed_cut(whole, lines, [])
    feed_cut(cut, lines, cuts, settling=settling)
    assert plain_state(cut) == plain_state(whole)


@settings(max_examples=50, deadline=None)
@given(lines=a_log())
def test_a_live_run_gives_what_the_finished_file_gives(lines: list[Line]) -> None:
    whole, live = engine(), engine()
    feed_cut(whole, lines, [])
    feed_cut(live, lines, range(len(lines)), settling=True)
    assert plain_state(live) == plain_state(whole)
    assert live.notes == whole.notes


@pytest.mark.parametrize("size", [23, 500])
def test_a_crash_loop_gives_the_same_episodes_live_as_read_at_once(size: int) -> None:
    """Each start begins anew and dies high above its loss: what is not kept each by itself is the same, and counted."""
    starts = KEPT_IN_ALL + 50
    losses = [2.0, 2.0, 2.0, 2.0, 5.0]
    lines = [
        train(step, 9.0 if (start, step) == (20, 5) else loss)
        for start in range(starts)
        for step, loss in enumerate(losses, 1)
    ]
    whole, live = read(lines), engine()
    feed_cut(live, lines, range(0, len(lines), size), settling=True)
    assert plain_state(live) == plain_state(whole)
    old, *new = live.episodes()
    assert (len(new), stands_for(old)) == (KEPT_IN_ALL, starts - KEPT_IN_ALL)
    assert (old.severity, old.worst_value, old.recovered) == (Severity.FAIL, 9.0, False)


@settings(max_examples=50, deadline=None)
@given(lines=a_log(), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_every_row_is_heard_once(lines: list[Line], cuts: Sequence[int]) -> None:
    heard: list[list[float]] = []
    for places in ([], cuts):
        made = engine()
        seen: list[float] = []
        made.on_frame = lambda frame, seen=seen: seen.extend(frame.lines.tolist())
        feed_cut(made, lines, places)
        heard.append(sorted(seen))
        assert len(seen) == len(set(seen))
    assert heard[0] == heard[1]


def test_an_episode_has_first_worst_and_last_step() -> None:
    values = [2.0] * 10 + [5.0, 30.0, 6.0] + [2.0] * 5
    made = read([train(step, value) for step, value in enumerate(values, 1)])
    (episode,) = made.episodes()
    assert (episode.first_step, episode.worst_step, episode.last_step) == (11.0, 12.0, 13.0)
    assert (episode.worst_value, episode.severity, episode.recovered) == (30.0, Severity.FAIL, True)
    (incident,) = made.incidents()
    assert incident.episodes == (episode.id,)
    assert incident.pages


def test_checks_see_what_was_counted() -> None:
    made = read([train(step, 2.0, grad_norm=1.0) for step in range(1, 6)])
    (check,) = made.checks()
    assert check.verdict is Verdict.PASS
    assert "signal='loss.train', labels=()): 5" in check.what


class Raises(Jumps):
    id = "test.raises"
    order = 5

    def update(self, frame):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError("a fault of its own")


class RaisesAtTheEnd(Jumps):
    id = "test.at_the_end"
    order = 6

    def result(self, view):  # type: ignore[no-untyped-def]
        raise KeyError("gone")


def test_a_faulty_check_is_dropped_and_said() -> None:
    made = read(
        [train(step, 2.0 if step != 5 else 30.0) for step in range(1, 9)], detectors=(Raises, RaisesAtTheEnd, Jumps)
    )
    checks = {check.id: check for check in made.checks()}
    assert "check test.raises failed: ZeroDivisionError: a fault of its own" in made.problems
    assert any("check test.at_the_end failed" in problem for problem in made.problems)
    assert checks["test.jumps"].verdict is Verdict.FAIL
    assert checks["test.raises"].verdict is Verdict.NO_DATA
    assert len(made.episodes()) >= 1


def test_notes_are_kept_in_bounded_room() -> None:
    made = read([Line(note=NoteKind.XID)] * 2000 + [train(1, 2.0)])
    assert len(made.notes) == 500
    assert made.note_counts[NoteKind.XID] == 2000


def test_facts_of_the_run_stand_before_the_logs() -> None:
    made = read([Line(fact=("clip_threshold", 5.0)), Line(fact=("total_steps", 100.0)), train(1, 2.0)],
                facts={"clip_threshold": 2.0})  # fmt: skip
    assert made.facts["clip_threshold"] == 2.0
    assert made.facts["total_steps"] == 100.0


def test_acknowledged_episodes_page_no_more_and_snooze_ends() -> None:
    made = read([train(step, 2.0 if step < 5 else 30.0) for step in range(1, 9)])
    (episode,) = made.episodes()
    assert made.incidents()[0].pages
    made.acknowledge(episode.id)
    made.snooze(episode.id, 1.0)
    assert made.episodes()[0].acknowledged
    assert made.episodes()[0].snoozed_until is None
    assert not made.incidents()[0].pages
    made.snooze(episode.id, 1e12)
    assert made.episodes()[0].snoozed_until == 1e12


def test_a_hundred_thousand_keys_are_capped_and_the_loss_survives() -> None:
    count = 100_000
    columns = {f"layer/{number}/noise": np.ones(2) for number in range(count)}
    columns["loss"] = np.array([2.0, 1.9])
    whole = np.arange(1, 3)
    made = engine()
    made.feed(
        "log", Parsed([Block("log", whole.astype(float), np.full(2, np.nan), whole, whole, columns, step_key="step")])
    )
    made.settle()
    assert made.series_views()[LOSS].values.tolist() == [2.0, 1.9]
    assert len(made.series_views()) < 5000
    assert any(problem.startswith("more than 9") and "more series than can" in problem for problem in made.problems)


def test_rl_and_moe_are_told_by_their_keys() -> None:
    assert read([Line({"reward": 0.5}, 1.0)]).rl
    assert not read([train(1, 2.0)]).rl
    assert read([Line(fact=("num_experts", 64.0)), train(1, 2.0)]).moe
    assert not read([train(1, 2.0)]).moe


def test_raw_keys_only_leaves_names_and_numbers_alone() -> None:
    made = engine()
    made.raw_keys_only = True
    frames = []
    made.on_frame = frames.append
    made.feed("log", parsed([Line({"lm loss": 2.5, "elapsed time per iteration (ms)": 1500.0}, 1.0)]))
    made.settle()
    (frame,) = frames
    assert {key.signal: column.tolist() for key, column in frame.columns.items()} == {
        "lm loss": [2.5],
        "elapsed time per iteration (ms)": [1500.0],
    }


def test_nothing_fed_says_nothing() -> None:
    made = engine()
    made.settle()
    assert (made.steps, made.attempts, made.episodes(), made.series_views()) == (None, (), (), {})


# Several sources.


def two_sources(order: str) -> tuple[Sequence[Line], Sequence[Line]]:
    stdout = [train(step, 3.0 - step / 1e3) for step in range(10, 510, 10)]
    metrics = [train(step, 3.0 - step / 1e3, grad_norm=1.0 if step != 250 else 9.0) for step in range(1, 501)]
    return stdout, metrics


def feed_in(order: str, **options):  # type: ignore[no-untyped-def]
    logs = dict(zip(("a.out", "b.jsonl"), two_sources(order), strict=True))
    made = engine(sources=("a.out", "b.jsonl"), **options)
    at = dict.fromkeys(logs, 0)
    for letter in order * 600:
        name = {"a": "a.out", "b": "b.jsonl"}[letter.lower()]
        size = 1000 if letter.isupper() else 7
        lines = logs[name][at[name] : at[name] + size]
        if lines:
            made.feed(name, parsed(lines, at[name] + 1, name))
            at[name] += len(lines)
    made.settle()
    return made


@pytest.mark.parametrize("order", ["BA", "ab", "ba", "abbb", "aB", "bA"])
def test_the_order_of_arrival_makes_no_difference(order: str) -> None:
    assert plain_state(feed_in(order)) == plain_state(feed_in("AB"))


def test_copies_of_a_signal_are_not_counted_twice() -> None:
    made = feed_in("ab")
    view = made.series_views()[LOSS]
    assert view.steps.tolist() == [float(step) for step in range(1, 501)]
    assert made.series_views()[GRAD].count == 500
    assert made.attempts == ((1.0, 500.0),)
    assert [episode.first_step for episode in made.episodes()] == [250.0]


def test_files_of_ranks_give_the_worst_rank() -> None:
    made = engine(sources=[f"log_rank{rank}.txt" for rank in range(3)])
    for rank in range(3):
        lines = [train(step, 2.0 + rank / 10 + (rank == 1) * (step > 5)) for step in range(1, 11)]
        made.feed(f"log_rank{rank}.txt", parsed(lines, source=f"log_rank{rank}.txt"))
    made.settle()
    views = made.series_views()
    assert views[SignalKey("loss.rank", (("rank", "2"),))].values.tolist() == [2.2] * 10
    assert views[SignalKey("loss.worst_rank")].values.tolist() == [2.2] * 5 + [3.1] * 5
    assert np.allclose(views[LOSS].values, [2.1] * 5 + [2.1 + 1 / 3] * 5)


def test_a_file_that_comes_after_another_is_a_later_attempt() -> None:
    made = engine(sources=("slurm-1.out", "slurm-2.out"))
    first = [Line({"loss": 3.0 - step / 100}, float(step), time=1e9 + step) for step in range(1, 101)]
    second = [Line({"loss": 3.0 - step / 100}, float(step), time=1e9 + 5000 + step) for step in range(51, 151)]
    made.feed("slurm-1.out", parsed(first, source="slurm-1.out"))
    made.feed("slurm-2.out", parsed(second, source="slurm-2.out"))
    made.settle()
    assert made.attempts == ((1.0, 100.0), (51.0, 150.0))
    assert made.series_views()[LOSS].count == 200


@settings(max_examples=100, deadline=None)
@given(
    logs=st.lists(a_log(), min_size=2, max_size=3),
    order=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 15)), max_size=20),
)
def test_any_interleaving_of_sources_gives_the_same(logs: list[list[Line]], order: list[tuple[int, int]]) -> None:
    names = [f"log{number}.txt" for number in range(len(logs))]
    # Time stamps may tell that one file follows another, and that is told from what has been read so far.
    logs = [[replace(line, time=None) for line in lines] for lines in logs]

    def fed(turns: Sequence[tuple[int, int]]) -> tuple[object, ...]:
        made = engine(sources=names)
        at = [0] * len(names)
        for which, many in [*turns, *((number, 1000) for number in range(len(names)))]:
            number = which % len(names)
            lines = logs[number][at[number] : at[number] + many]
            made.feed(names[number], parsed(lines, at[number] + 1, names[number]))
            at[number] += len(lines)
        made.settle()
        return plain_state(made)

    assert fed(order) == fed([])
