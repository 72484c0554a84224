from __future__ import annotations

from trainmon.monitor.pace import FRESH_S, HEAVY_SHARE, LEAST_S, MOST_S, SHARE, Pace


class Load:
    """A process that uses `per_round` seconds each time it does its round, and `per_record` for each that comes."""

    def __init__(self, per_round_s: float, per_record_s: float = 0.0, records_a_second: int = 0) -> None:
        self.per_round_s = per_round_s
        self.records_a_second = records_a_second
        self.per_second_s = per_record_s * records_a_second
        self.records = 0
        self.used_s = 0.0
        self.pace = Pace(lambda: self.used_s)

    def run(self, seconds: float, *, is_busy: bool = False) -> float:
        for second in range(int(seconds)):
            self.pace.note(float(second), is_busy=is_busy, records=self.records)
            self.used_s += self.per_round_s / self.pace.interval_s + self.per_second_s
            self.records += self.records_a_second
        return self.pace.interval_s


def test_what_is_cheap_is_done_at_once() -> None:
    assert Load(per_round_s=0.0005).run(60) <= 2 * LEAST_S


def test_a_round_is_done_as_often_as_its_share_allows() -> None:
    load = Load(per_round_s=0.03)
    interval_s = load.run(120)
    assert LEAST_S < interval_s < MOST_S
    assert 0.7 * SHARE < load.per_round_s / interval_s < 1.4 * SHARE


def test_nothing_is_put_off_for_longer_than_the_limit() -> None:
    assert Load(per_round_s=5.0).run(60) == MOST_S


def test_what_comes_thick_and_fast_is_told_within_a_second_whatever_it_costs() -> None:
    assert Load(per_round_s=0.01, per_record_s=0.00003, records_a_second=5000).run(60) <= FRESH_S


def test_many_busy_runs_are_told_as_often_as_the_heavier_share_allows() -> None:
    load = Load(per_round_s=0.8, records_a_second=2000)
    interval_s = load.run(120)
    assert FRESH_S < interval_s < MOST_S / 2
    assert 0.6 * HEAVY_SHARE < load.per_round_s / interval_s < 1.6 * HEAVY_SHARE


def test_few_records_wait_for_the_share() -> None:
    assert Load(per_round_s=0.2, records_a_second=20).run(120) == MOST_S


def test_reading_histories_does_not_count() -> None:
    load = Load(per_round_s=5.0)
    before = load.pace.interval_s
    assert load.run(60, is_busy=True) == before
    load.per_round_s = 0.0
    load.used_s += 0.9  # the last of them
    assert load.pace.note(60.0, is_busy=False) == before
