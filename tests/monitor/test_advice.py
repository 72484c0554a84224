"""Recommended actions: numbers of this run, and silence where there are none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tests.monitor.logs import Line, engine, parsed, train
from trainmon.monitor.advice import actions
from trainmon.monitor.alerts import AlertBook
from trainmon.monitor.assemble import assemble
from trainmon.monitor.finding import Finding, Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.judging import Pulse
from trainmon.tails.record import Note, NoteKind, Parsed


def advised(lines: Sequence[Line], *checkpoints: int) -> tuple[str, ...]:
    run = engine(detectors=None)
    read = parsed(lines)
    saved = [
        Note("log", step, step * 100, NoteKind.CHECKPOINT_SAVED, "saved", step=float(step)) for step in checkpoints
    ]
    run.feed("log", Parsed(read.blocks, [*read.notes, *saved], read.facts, read.lines, read.lines, 0))
    run.settle()
    return assemble(run, (), (), Pulse(None, None, False), live=False).actions


def healthy(step: int, **more: float) -> Line:
    return train(step, 2.0 + 0.01 * (step * 7 % 5), grad_norm=0.3 + 0.01 * (step % 10), lr=3e-4, **more)


def broken(step: int) -> Line:
    return train(step, 8.0 + 0.01 * (step * 7 % 5), grad_norm=0.35, lr=3e-4)


def test_a_jump_that_stays_names_checkpoint_data_rate_and_clip() -> None:
    told = advised([*map(healthy, range(1, 600)), *map(broken, range(600, 900))], 250, 500, 750)
    assert told[0] == "Roll back to the checkpoint saved at step 500, the last before the fault at step 600"
    assert told[1].startswith("When trained again from there, skip the data of step")
    assert "step 600" in told[1] or "steps 600 to" in told[1]
    assert told[2] == "Try a learning rate of 0.00015 (0.5 times the 0.0003 at step 600)"
    assert told[3].startswith("Clip the gradient norm at 0.38")
    assert len(set(told)) == len(told)


def test_norms_that_already_run_away_say_nothing_of_where_to_clip() -> None:
    rising = [train(step, 2.0, grad_norm=0.3 + (step - 600) * 0.5, lr=3e-4) for step in range(600, 650)]
    dead = [train(step, math.nan, grad_norm=math.nan, lr=3e-4) for step in range(650, 750)]
    (clip,) = [line for line in advised([*map(healthy, range(1, 600)), *rising, *dead]) if line.startswith("Clip")]
    assert clip.startswith("Clip the gradient norm at 0.39: before step 603 "), clip


def test_a_loss_that_was_nan_and_came_back_is_not_called_lost() -> None:
    lost = [train(step, math.nan, grad_norm=0.3, lr=3e-4) for step in range(600, 604)]
    told = advised([*map(healthy, range(1, 600)), *lost, *map(healthy, range(604, 900))], 500)
    assert told[0].startswith("Roll back to the checkpoint saved at step 500")
    assert "Try a learning rate of 0.00015 (0.5 times the 0.0003 at step 600)" in told
    assert any(line.startswith("The loss came back") for line in told)
    assert not any("weights are probably lost" in line for line in told)


def test_a_warning_that_stays_names_the_checkpoint_before_it() -> None:
    worse = [train(step, 2.25 + 0.01 * (step * 7 % 5), grad_norm=0.35, lr=3e-4) for step in range(600, 900)]
    told = advised([*map(healthy, range(1, 600)), *worse], 250, 500, 750)
    assert told[0] == "Should it stay so: the checkpoint saved at step 500 is the last before step 600"
    assert not any(line.startswith("Should") for line in advised([*map(healthy, range(1, 600)), *worse]))


def test_a_clip_rate_that_rose_names_the_threshold_that_fits() -> None:
    clipped = [
        train(step, 2.0 + 0.01 * (step % 5), grad_norm=1.1 + 0.01 * (step % 10), lr=3e-4) for step in range(600, 2500)
    ]
    told = advised([Line(fact=("clip_threshold", 1.0)), *map(healthy, range(1, 600)), *clipped])
    (line,) = [line for line in told if line.startswith("If the norms since step ")]
    assert line.endswith("are sound: a clip threshold of 1.2 (now 1) would again clip one step in ten")


def test_without_a_checkpoint_nothing_is_said_of_data() -> None:
    told = advised([*map(healthy, range(1, 600)), *map(broken, range(600, 900))])
    assert not [line for line in told if "checkpoint saved" in line or "skip the data of step" in line]
    assert any("learning rate of 0.00015" in line for line in told)
    late = advised([*map(healthy, range(1, 600)), *map(broken, range(600, 900))], 750)
    assert late[0] == "No checkpoint in the log is older than the fault at step 600"


def test_one_spike_that_recovers_changes_no_setting() -> None:
    told = advised([broken(step) if step == 300 else healthy(step) for step in range(1, 600)], 100)
    assert not [line for line in told if line.startswith(("Try", "Clip", "Roll back", "When"))]


def test_spikes_that_keep_coming_ask_for_a_lower_rate() -> None:
    told = advised([broken(step) if step in (200, 300, 400, 500) else healthy(step) for step in range(1, 600)])
    assert any(line.startswith("4 spikes: try a learning rate of 0.00021") for line in told)


def test_a_clip_threshold_that_is_lower_already_stays() -> None:
    lines = [Line(fact=("clip_threshold", 0.1)), *map(healthy, range(1, 600)), *map(broken, range(600, 900))]
    assert not [line for line in advised(lines) if line.startswith("Clip")]
    lines[0] = Line(fact=("clip_threshold", 1.0))
    assert any("Clip the gradient norm at 0.38 in place of 1:" in line for line in advised(lines))


def test_slow_and_odd_ranks_are_named_while_they_are() -> None:
    book = AlertBook()
    for check, signal, rank in (("sys.straggler", "sys.straggler", "3"), ("loss.groups", "loss.rank", "5")):
        key = SignalKey(signal, (("rank", rank),))
        book.apply(check, Finding("open", "slow", key, Severity.WARN, 200.0, 1.4, 200, "log", 0))
    told = actions((), book.episodes(), (), {}, {})
    assert any(line.startswith("Drain the node of rank 3: it has set the pace since step 200") for line in told)
    assert any(line.startswith("Look at rank 5") for line in told)
    assert actions((), [replace(one, recovered=True) for one in book.episodes()], (), {}, {}) == ()


def test_a_healthy_run_is_left_alone() -> None:
    assert not [line for line in advised(list(map(healthy, range(1, 400)))) if line.startswith(("Try", "Roll", "Clip"))]


def test_a_loss_that_is_no_number_from_the_first_step_is_no_reason_to_fail() -> None:
    told = advised([train(step, math.nan, grad_norm=math.nan, lr=3e-4) for step in range(1, 50)], 20)
    assert told[0] == "No checkpoint in the log is older than the fault at step 1"


def test_memory_that_grows_names_the_step_by_which_to_save() -> None:
    lines = [healthy(step, **{"peak memory (GiB)": 40 + 0.05 * step}) for step in range(1, 600)]
    facts = [Line(fact=("gpu_memory_bytes", 80.0 * 2**30)), Line(fact=("total_steps", 50_000.0))]
    told = [line for line in advised([*facts, *lines], 500) if line.startswith("Save a checkpoint by step")]
    assert len(told) == 1
    assert "memory ends near step 80" in told[0] or "memory ends near step 79" in told[0]
    assert told[0].endswith("the last one is of step 500")


def test_a_card_with_new_errors_is_named() -> None:
    lines = [healthy(step, **{"system.gpu.3.ecc_errors": float(step > 300)}) for step in range(1, 600)]
    assert any("card 3" in line for line in advised(lines))


def test_a_loss_and_a_norm_that_are_nan_give_one_advice() -> None:
    dead = [train(step, math.nan, grad_norm=math.nan, lr=3e-4) for step in range(600, 700)]
    told = advised([*map(healthy, range(1, 600)), *dead], 500)
    assert len([line for line in told if "loss scale" in line]) == 1
    norms = [train(step, 2.0, grad_norm=math.nan, lr=3e-4) for step in range(600, 700)]
    told = advised([*map(healthy, range(1, 600)), *norms], 500)
    assert len([line for line in told if "loss scale" in line]) == 1


def test_a_loss_that_is_no_longer_logged_asks_for_no_other_learning_rate() -> None:
    gone = [Line({"grad_norm": 0.3, "lr": 3e-4}, float(step)) for step in range(600, 700)]
    told = advised([*map(healthy, range(1, 600)), *gone])
    assert not [line for line in told if "learning rate" in line or "Clip the" in line or "weights" in line], told
    assert any("no longer logged" in line for line in told)


def test_a_loss_that_rose_before_it_was_lost_is_not_called_normal() -> None:
    rising = [train(step, 2.0 + (step - 599) * 0.4, grad_norm=0.3, lr=3e-4) for step in range(600, 606)]
    lost = [train(step, math.nan, grad_norm=0.3, lr=3e-4) for step in range(606, 700)]
    told = advised([*map(healthy, range(1, 600)), *rising, *lost])
    assert any(line.startswith("Stop: the weights are probably lost") for line in told)
    assert not any("normal and mostly recover" in line for line in told)
    came_back = advised([*map(healthy, range(1, 600)), *rising[:2], *map(healthy, range(602, 900))])
    assert any("normal and mostly recover" in line for line in came_back)
