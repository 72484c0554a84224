from __future__ import annotations

from trainmon.monitor.pace import LEAST_S, MOST_S, SHARE, Pace


class Load:
    """A process that uses `per_round` seconds each time it does its round."""

    def __init__(self, per_round_s: float) -> None:
        self.per_round_s = per_round_s
        self.used_s = 0.0
        self.pace = Pace(lambda: self.used_s)

    def run(self, seconds: float, *, is_busy: bool = False) -> float:
        for second in range(int(seconds)):
            self.pace.note(float(second), is_busy=is_busy)
            self.used_s += self.per_round_s / self.pace.interval_s
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


def test_reading_histories_does_not_count() -> None:
    load = Load(per_round_s=5.0)
    before = load.pace.interval_s
    assert load.run(60, is_busy=True) == before
