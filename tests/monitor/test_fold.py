"""Episodes stay few over a run of any length, and none is lost from the count."""

from __future__ import annotations

import math

from trainmon.monitor.alerts import AlertBook
from trainmon.monitor.detectors.common import tell
from trainmon.monitor.detectors.lineage import Restart
from trainmon.monitor.finding import Action, Finding, Severity
from trainmon.monitor.fold import KEPT, KEPT_IN_ALL, stands_for
from trainmon.monitor.frame import SignalKey

LOSS = SignalKey("loss.train")
COUNT = 5000


def said(action: Action, step: float, value: float, severity: Severity = Severity.WARN, attempt: int = 0) -> Finding:
    words = f"loss rose to {value:g} at step {step:g}" if action == "open" else ""
    return Finding(action, "spike", LOSS, severity, step, value, int(step), "log", attempt, what=words)


def spiky(count: int = COUNT) -> AlertBook:
    """A spike every 10 steps, each of them over two steps; the 1,234th is the worst and a FAIL."""
    book = AlertBook()
    for number in range(1, count + 1):
        step = 10.0 * number
        is_worst = number == 1234
        book.apply("loss.spike", said("open", step, 9.0 if is_worst else 3.0, Severity(1 + is_worst)))
        book.apply("loss.spike", said("recover", step + 1, 2.0))
    return book


def test_the_newest_are_kept_and_the_others_counted() -> None:
    episodes = spiky().episodes()
    assert len(episodes) == KEPT
    assert sum(map(stands_for, episodes)) == COUNT
    old, *new = episodes
    assert (old.first_step, old.last_step, old.recovered) == (10.0, 10.0 * (COUNT - KEPT + 1), True)
    assert (old.severity, old.worst_step, old.worst_value) == (Severity.FAIL, 12340.0, 9.0)
    assert "at worst: loss rose to 9 at step 12340" in old.what
    assert [one.first_step for one in new] == [10.0 * number for number in range(COUNT - KEPT + 2, COUNT + 1)]


def test_the_count_is_told_and_a_copy_goes_its_own_way() -> None:
    book = spiky(300)
    other = book.copy()
    other.apply("loss.spike", said("open", 1e5, 4.0))
    other.apply("loss.spike", said("recover", 1e5 + 1, 2.0))
    assert sum(map(stands_for, book.episodes())) == 300
    assert sum(map(stands_for, other.episodes())) == 301
    assert "299 more like it" in tell(book.episodes())


def test_other_signals_attempts_and_what_is_open_stay_apart() -> None:
    book = spiky(300)
    book.begin_attempt(1, Restart(step=1e6, resumed=True), 0)
    for number in range(150):
        book.apply("loss.spike", said("open", 1e6 + 10 * number, 3.0, attempt=1))
        book.apply("loss.spike", said("recover", 1e6 + 10 * number + 1, 2.0, attempt=1))
    book.apply("loss.spike", said("open", 2e6, math.nan, attempt=1))
    episodes = book.episodes()
    assert len(episodes) == 2 * KEPT + 1
    assert sum(map(stands_for, episodes)) == 300 + 150 + 1
    assert [one.first_step for one in episodes if not one.recovered] == [2e6]


def test_a_job_that_is_restarted_all_night_has_no_end_of_episodes_either() -> None:
    """Three spikes an attempt: the newest are there each by itself, the others are counted, the worst is kept."""
    book, attempts = AlertBook(), 1500
    for attempt in range(attempts):
        book.begin_attempt(attempt, Restart(step=1e6, resumed=True), 0)
        for number in range(3):
            step, is_worst = 100.0 * attempt + 10 * number, (attempt, number) == (500, 1)
            value, severity = (9.0, Severity.FAIL) if is_worst else (3.0, Severity.WARN)
            book.apply("loss.spike", said("open", step, value, severity, attempt=attempt))
            book.apply("loss.spike", said("recover", step + 1, 2.0, attempt=attempt))
    old, *new = book.episodes()
    assert len(new) == KEPT_IN_ALL - 1
    assert stands_for(old) + len(new) == 3 * attempts
    assert (old.attempt, old.severity, old.worst_value, old.worst_step) == (0, Severity.FAIL, 9.0, 50_010.0)
    assert f"in starts 1 to {new[0].attempt + 1}" in old.what or f"in starts 1 to {new[0].attempt}" in old.what
    assert "at worst: loss rose to 9 at step 50010" in old.what
    assert new[-1].attempt == attempts - 1


def crashing(book: AlertBook, starts: range) -> None:
    """Each start begins anew and dies of it; nobody sees that end."""
    for attempt in starts:
        book.begin_attempt(attempt, Restart(step=1.0, resumed=False), attempt)
        value, severity = (math.nan, Severity.FAIL) if attempt == 700 else (3.0, Severity.WARN)
        book.apply("loss.spike", said("open", 40.0 + attempt % 3, value, severity, attempt=attempt))


def test_a_job_that_crashes_at_each_start_has_no_end_of_open_episodes_either() -> None:
    book, starts = AlertBook(), 1500
    crashing(book, range(starts))
    old, *new = book.episodes()
    assert len(new) == KEPT_IN_ALL
    assert stands_for(old) + len(new) == starts
    assert not any(one.recovered for one in (old, *new))
    assert (old.attempt, old.severity, old.first_step, old.last_step) == (0, Severity.FAIL, 40.0, 42.0)
    assert f"{starts - KEPT_IN_ALL} times (spike) in starts 1 to {starts - KEPT_IN_ALL} from step 40 to 42" in old.what
    assert [one.attempt for one in new] == list(range(starts - KEPT_IN_ALL, starts))


def test_open_ones_that_are_counted_are_the_same_in_a_copy_and_end_with_what_they_are_of() -> None:
    book = AlertBook()
    crashing(book, range(1000))
    early = book.copy()
    crashing(book, range(1000, 1200))
    crashing(early, range(1000, 1200))
    assert early.episodes() == book.episodes()
    book.apply("loss.spike", said("recover", 100.0, 2.0, attempt=1199))
    assert [one.attempt for one in book.episodes() if one.recovered] == [1199]
    assert sum(map(stands_for, book.episodes())) == 1200


def test_levels_that_were_got_used_to_are_counted_and_the_newest_can_still_end() -> None:
    book = AlertBook()
    for number in range(500):
        book.apply("loss.spike", said("open", 10.0 * number, 3.0))
        book.apply("loss.spike", said("settle", 10.0 * number + 5, 3.0))
    assert sum(map(stands_for, book.episodes())) == 500
    assert len(book.episodes()) == KEPT
    end = Finding("recover", "spike", LOSS, Severity.WARN, 6000.0, 2.0, 0, "log", 0, first_step=4990.0)
    ended = book.apply("loss.spike", end)
    assert ended is not None
    assert (ended.first_step, ended.recovered) == (4990.0, True)
    gone = Finding("recover", "spike", LOSS, Severity.WARN, 6000.0, 2.0, 0, "log", 0, first_step=0.0)
    assert book.apply("loss.spike", gone) is None
