"""Attempts and steps: what is a restart and what is not."""

from __future__ import annotations

import math
import random

import pytest

from tests.monitor.logs import LOSS, Line, engine, feed_cut, parsed, plain_state, read, train
from trainmon.monitor.frame import SignalKey
from trainmon.tails.record import NoteKind


def losses(steps, start=3.0):
    return [train(step, start + 1 / (1 + number)) for number, step in enumerate(steps)]


def charted(made, key=LOSS):
    view = made.series_views()[key]
    return list(zip(view.attempts.tolist(), view.steps.tolist(), strict=True))


def test_a_plain_run_is_one_attempt():
    made = read(losses(range(1, 51)))
    assert made.attempts == ((1.0, 50.0),)
    assert (made.steps.first, made.steps.last, made.steps.count, made.steps.key) == (1.0, 50.0, 50, "step")


@pytest.mark.parametrize(
    ("steps", "attempts"),
    [
        ([10, 20, 30, 40, 20, 30, 40, 50], ((10.0, 40.0), (20.0, 50.0))),
        ([20, 40, 20, 40, 60], ((20.0, 40.0), (20.0, 60.0))),
        ([1, 2, 3, 4, 5, 1, 2, 3], ((1.0, 5.0), (1.0, 3.0))),
        ([*range(5742), *range(1, 503)], ((0.0, 5741.0), (1.0, 502.0))),
        ([0, 200, 400, 464, 0, 200, 400, 462, 0, 200], ((0.0, 464.0), (0.0, 462.0), (0.0, 200.0))),
        ([7500, 7520, 7540, 7560, 7580, 7520, 7540, 7560, 7520, 7540, 7560, 7580, 7600],
         ((7500.0, 7580.0), (7520.0, 7560.0), (7520.0, 7600.0))),
        ([1, 2, 3, 1], ((1.0, 3.0), (1.0, 1.0))),
    ],
)  # fmt: skip
def test_a_step_back_begins_an_attempt(steps, attempts):
    made = read(losses(steps))
    assert made.attempts == attempts
    assert made.steps.count == len(set(steps))
    assert [step for _, step in charted(made)] == steps


def test_a_launch_line_begins_an_attempt_even_where_the_steps_go_on():
    lines = [*losses(range(1, 21)), Line(note=NoteKind.LAUNCH), Line(note=NoteKind.RESUMED), *losses(range(21, 30))]
    assert read(lines).attempts == ((1.0, 20.0), (21.0, 29.0))


def test_launch_lines_of_all_ranks_before_the_first_step_are_no_restarts():
    lines = [Line(note=NoteKind.LAUNCH)] * 8 + losses(range(1, 10))
    assert read(lines).attempts == ((1.0, 9.0),)


def test_a_new_file_begins_an_attempt():
    made = engine()
    made.feed("log", parsed(losses(range(1, 10))))
    made.feed("log", parsed(losses(range(1, 5))), restarted=True)
    made.settle()
    assert made.attempts == ((1.0, 9.0), (1.0, 4.0))


def test_the_same_record_again_is_one_record():
    lines = [line for line in losses(range(1, 20)) for _ in range(2)]
    made = read(lines)
    assert charted(made) == [(0, float(step)) for step in range(1, 20)]
    assert made.attempts == ((1.0, 19.0),)


def test_two_values_at_one_step_are_both_kept():
    made = read([train(1, 3.0), train(2, 2.5), train(2, 2.6), train(3, 2.4)])
    assert charted(made) == [(0, 1.0), (0, 2.0), (0, 2.0), (0, 3.0)]
    assert made.steps.count == 3


def test_nan_records_that_repeat_are_one():
    made = read([train(1, math.nan), train(1, math.nan), train(2, None), train(2, None)])
    assert made.series_views()[LOSS].bad_steps.tolist() == [1.0, 2.0]


def test_validation_rows_on_an_epoch_counter_are_no_restarts():
    lines = []
    for epoch in range(1, 11):
        lines += losses(range((epoch - 1) * 69 + 69, epoch * 69 + 69, 23))
        lines.append(Line({"val_loss": 2.0 - epoch / 100}, step=float(epoch)))
    made = read(lines)
    assert len(made.attempts) == 1
    steps = [step for _, step in charted(made, SignalKey("eval.nll"))]
    assert steps == sorted(steps)
    assert steps[0] > 69


def test_validation_without_a_step_stands_at_the_last_step():
    lines = [train(10, 3.0), Line({"val_loss": 3.1}), train(20, 2.9), Line({"val_loss": 3.0})]
    made = read(lines)
    assert [step for _, step in charted(made, SignalKey("eval.nll"))] == [10.0, 20.0]


def test_validation_before_the_first_step_stands_at_that_step():
    made = read([Line({"val_loss": 11.0}), train(7, 3.0), train(8, 2.9)])
    assert [step for _, step in charted(made, SignalKey("eval.nll"))] == [7.0]


def test_records_without_any_step_are_numbered():
    made = read([Line({"loss": 3.0 - number / 100}) for number in range(40)])
    assert made.steps.key == "line"
    assert (made.steps.first, made.steps.last, made.steps.count) == (1.0, 40.0, 40)
    short = read([Line({"loss": 3.0 - number / 100}) for number in range(3)])
    assert (short.steps.last, short.steps.key) == (3.0, "line")


def test_a_counter_that_begins_anew_each_epoch_is_added_up():
    lines = [
        train(step, 3.0 - epoch / 10 - step / 1e4, epoch=epoch) for epoch in (1, 2, 3) for step in range(25, 225, 25)
    ]
    made = read(lines)
    assert made.attempts == ((25.0, 600.0),)
    counted_from_zero = [train(step, 3.0 - epoch, epoch=epoch) for epoch in (0, 1) for step in range(10)]
    assert read(counted_from_zero).attempts == ((0.0, 19.0),)


def test_a_restart_within_an_epoch_is_not_added_up():
    lines = [train(step, 3.0 - step / 1e4, epoch=1) for step in [*range(25, 225, 25), *range(25, 100, 25)]]
    assert read(lines).attempts == ((25.0, 200.0), (25.0, 75.0))


def test_a_row_that_comes_late_stays_in_its_attempt():
    made = read(losses([60, 61, 62, 64, 66, 65, 67, 68]))
    assert made.attempts == ((60.0, 68.0),)
    assert made.problems == ()


def test_two_writers_far_apart_are_told_and_only_one_is_judged():
    steps = [step for pair in zip(range(64, 164), range(32, 132), strict=True) for step in pair]
    made = read(losses(steps))
    assert made.attempts == ((64.0, 163.0),)
    assert any("two writers" in problem for problem in made.problems)
    assert charted(made) == [(0, float(step)) for step in range(64, 164)]
    apart = charted(made, SignalKey("loss", (("writer", "2"),)))
    assert [step for _, step in apart] == [float(step) for step in range(32, 132)]


def test_a_second_writer_that_stays_alone_becomes_the_run():
    steps = [step for pair in zip(range(64, 104), range(32, 72), strict=True) for step in pair]
    made = read(losses([*steps, *range(72, 150)]))
    assert made.attempts[-1][1] == 149.0


def test_workers_that_draw_the_same_steps_are_no_restarts():
    lines = [train(step, 12.5 + number / 100) for step in range(1, 4) for number in range(8)]
    for step in range(4, 60):
        lines += [
            train(step, 12.5),
            train(step - 1, 12.61),
            train(step, 12.7),
            train(step - 1, 12.62),
            train(step, 12.6),
        ]
    made = read(lines)
    assert made.attempts == ((1.0, 59.0),)
    assert any("writers" in problem for problem in made.problems)


def test_a_config_record_before_the_first_step_is_no_attempt():
    made = read([Line({"hidden_size": 64.0, "layers": 2.0}), train(50, 3.0), train(100, 2.0)])
    assert made.attempts == ((50.0, 100.0),)


def test_setup_metrics_at_step_0_then_a_launch_then_training():
    lines = [Line({"peak memory (GB)": 3.0}, 0.0), Line(note=NoteKind.LAUNCH), *losses(range(1152, 11520, 1152))]
    assert read(lines).attempts == ((1152.0, 10368.0),)


def test_a_vanished_loss_does_not_hide_the_steps():
    lines = [train(step, 3.0, lr=0.1) for step in range(1, 30)] + [
        Line({"lr": 0.1}, float(step)) for step in range(30, 60)
    ]
    assert read(lines).attempts == ((1.0, 59.0),)


def test_a_held_row_is_shown_once_settled_and_taken_back_when_the_old_sequence_goes_on():
    made = engine()
    shown = []
    made.on_frame = lambda frame: shown.extend(frame.steps.tolist())
    made.feed("log", parsed(losses([*range(60, 65), 32])))
    assert made.attempts == ((60.0, 64.0),)
    made.settle()
    made.settle()
    assert made.attempts == ((60.0, 64.0), (32.0, 32.0))
    made.feed("log", parsed(losses([65, 33, 66, 34]), first_line=7))
    assert made.attempts == ((60.0, 66.0),)
    made.settle()
    assert sorted(shown) == sorted([*range(60, 65), 32, 65, 33, 66, 34])


def test_cutting_between_a_note_and_its_rows_changes_nothing():
    lines = [*losses(range(1, 12)), Line(note=NoteKind.LAUNCH), *losses(range(5, 20))]
    whole = read(lines)
    for cut in range(len(lines)):
        made = engine()
        feed_cut(made, lines, [cut])
        assert made.attempts == whole.attempts == ((1.0, 11.0), (5.0, 19.0))


def listed(*keys, steps=40):
    return [Line({key: 3.0 - step / 100}, step) for key in keys for step in range(1, steps + 1)]


@pytest.mark.parametrize("cuts", [(), (45, 90), tuple(range(0, 160, 7))])
def test_quantities_listed_one_after_another_are_one_attempt(cuts):
    made = engine()
    feed_cut(made, listed("loss", "grad_norm", "lr", "tokens_per_sec"), cuts)
    assert made.attempts == ((1.0, 40.0),)
    views = made.series_views()
    for name in ("loss.train", "grad.norm", "optim.lr", "sys.tokens_per_second"):
        assert views[SignalKey(name)].steps.tolist() == list(range(1, 41))


def test_the_same_quantity_listed_again_is_a_restart():
    assert read([*listed("loss"), *listed("loss")]).attempts == ((1.0, 40.0), (1.0, 40.0))


def slipping(steps, lag=0, seed=0):
    """Records of two processes in one log, each of `steps`, by chance; the second begins `lag` behind."""
    chance, places = random.Random(seed), [0, 0]
    lines = []
    own = [steps[lag:], steps]
    while any(place < len(mine) for place, mine in zip(places, own, strict=True)):
        ready = [who for who in (0, 1) if places[who] < len(own[who])]
        who = chance.choice(ready)
        step = own[who][places[who]]
        lines.append(train(step, 3.0 + who - step / 1e4, grad_norm=1.0 + who + places[who] / 1e3))
        places[who] += 1
    return lines


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("width", [1, 10])
def test_two_writers_that_slip_past_each_other_are_no_restarts(seed, width):
    made = read(slipping(range(width, 60 * width, width), seed=seed))
    assert len(made.attempts) == 1
    assert any("writers" in problem for problem in made.problems)


@pytest.mark.parametrize("seed", range(8))
def test_two_writers_far_apart_that_slip_are_no_restarts(seed):
    made = read(slipping(range(1, 301), lag=40, seed=seed))
    assert len(made.attempts) == 1
    assert any("two writers" in problem for problem in made.problems)


def test_few_records_of_two_writers_are_told_too():
    steps = [1, 1, 2, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 8, 7, 8]
    made = read(losses(steps))
    assert made.attempts == ((1.0, 8.0),)
    assert any("writers" in problem for problem in made.problems)


@pytest.mark.parametrize("back", [2, 3, 5, 30])
@pytest.mark.parametrize("more", [1, 2, 3, 11, 12, 13, 40])
def test_a_restart_of_few_steps_is_one_wherever_the_log_ends(back, more):
    steps = [*range(1, 51), *range(51 - back, 51 - back + more)]
    assert read(losses(steps)).attempts == ((1.0, 50.0), (51.0 - back, 50.0 - back + more))


def test_records_printed_twice_are_no_second_writer_after_a_restart():
    steps = [step for step in [*range(1, 31), *range(25, 50)] for _ in range(2)]
    made = read([train(step, 3.0 - step / 100) for step in steps])
    assert made.attempts == ((1.0, 30.0), (25.0, 49.0))
    assert made.problems == ()


@pytest.mark.parametrize("seed", range(3))
def test_where_the_records_of_two_writers_are_cut_changes_nothing(seed):
    lines = slipping(range(1, 40), seed=seed)
    whole = plain_state(read(lines))
    for size in (1, 2, 3, 7):
        made = engine()
        feed_cut(made, lines, range(size, len(lines), size), settling=size == 3)
        assert plain_state(made) == whole


@pytest.mark.parametrize("begin", [151, 155, 195])
def test_a_restart_that_logs_oftener_begins_where_it_does(begin):
    made = read(losses([*range(10, 201, 10), *range(begin, 260)]))
    assert made.attempts == ((10.0, 200.0), (float(begin), 259.0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("reach", [2, 4])
def test_rows_that_come_late_all_the_time_are_no_restarts(seed, reach):
    chance, steps = random.Random(seed), list(range(1, 201))
    for at in range(4, 196, reach):
        other = at + chance.randrange(reach)
        steps[at], steps[other] = steps[other], steps[at]
    made = read(losses(steps))
    assert made.attempts == ((1.0, 200.0),)
    assert sorted(step for _, step in charted(made)) == [float(step) for step in range(1, 201)]
    assert made.problems == ()


@pytest.mark.parametrize(
    "first", [[2, 1], [3, 2, 1], [3, 1, 2], [4, 1, 2, 3], [4, 2, 3, 1], [4, 3, 2, 1], [2, 1, 4, 3]]
)
@pytest.mark.parametrize("width", [1, 10])
def test_first_rows_out_of_order_are_of_the_one_attempt(first, width):
    steps = [step * width for step in [*first, *range(len(first) + 1, 40)]]
    made = read(losses(steps))
    assert made.attempts == ((float(width), 39.0 * width),)
    assert made.steps.count == 39
    assert made.steps.first == width
    assert made.problems == ()


@pytest.mark.parametrize("steps", [[3, 1, 2, 3, 4, 5], [3, 4, 1, 2, 3, 4, 5], [100, 101, 95, *range(96, 120)]])
def test_a_restart_behind_the_first_rows_stays_one(steps):
    assert len(read(losses(steps)).attempts) == 2


@pytest.mark.parametrize("count", [3, 9, 40])
def test_no_row_of_steps_that_fall_all_the_way_is_lost(count):
    made = read(losses(range(count, 0, -1)))
    assert made.steps.count == count
    assert sorted(step for _, step in charted(made)) == [float(step) for step in range(1, count + 1)]
