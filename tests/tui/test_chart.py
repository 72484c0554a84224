from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui import sample
from tests.tui.test_raster import curve
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.tui.arrange import arrange
from trainmon.tui.chart import Chart, Shade, draw_chart
from trainmon.tui.glyphs import ASCII, UNICODE, Glyphs
from trainmon.tui.slots import first_screen
from trainmon.tui.span import width_of

RUNS = sample.fleet().runs


def words(chart: Chart, width: int, height: int, glyphs: Glyphs = UNICODE) -> list[str]:
    lines = draw_chart(chart, width, height, glyphs)
    assert len(lines) == height
    assert all(width_of(line) == width for line in lines)
    return ["".join(span.text for span in line) for line in lines]


def chart_of(values: list[float], **more: object) -> Chart:
    return Chart("loss", (curve(values),), key=1, **more)  # type: ignore[arg-type]


def test_a_small_chart_in_full() -> None:
    chart = chart_of([4.0, 3.0, 2.0, 1.0], number="1", value="1.000 nats", x_name="step")
    assert words(chart, 24, 5) == [
        "1 loss 1.000 nats       ",
        "4.0 │⠉⠒⠢⠤⢄⣀             ",
        "    │      ⠉⠑⠒⠢⠤⢄⣀      ",
        "1.0 │             ⠉⠑⠒⠢⠤⣀",
        "    └0───── step ──────3",
    ]


def test_in_ascii_every_character_is_ascii() -> None:
    for run in RUNS:
        for chart in first_screen(run, ASCII).charts:
            assert "\n".join(words(replace(chart, title="t", beside=""), 60, 9, ASCII)).isascii()


def test_nan_is_marked_at_its_step() -> None:
    values = [1.0] * 100
    values[50] = float("nan")
    plot = words(chart_of(values), 40, 6)[1]
    axis = plot.index("│") + 1
    assert plot.count("✗") == 1
    assert abs(plot.index("✗") - axis - (40 - axis) // 2) <= 1


def test_all_values_bad_is_still_a_chart() -> None:
    lines = words(chart_of([float("nan")] * 20), 40, 6)
    assert "✗" in lines[1]


def test_shades_and_their_glyph() -> None:
    shade = Shade(50, 59, "fail", "✖")
    lines = draw_chart(chart_of([float(i % 7) for i in range(100)], shades=(shade,)), 60, 8, UNICODE)
    shaded = {span.bg for span in lines[3]}
    assert shaded == {"", "shade_fail"}
    assert "✖" in "".join(span.text for span in lines[-1])


def test_a_threshold_within_reach_is_drawn_and_one_out_of_reach_is_not() -> None:
    flat = [1.0 + i % 2 for i in range(100)]
    near = draw_chart(chart_of(flat, threshold=2.5), 60, 8, UNICODE)
    far = draw_chart(chart_of(flat, threshold=2500.0), 60, 8, UNICODE)
    assert any(span.fg == "threshold" for line in near for span in line)
    assert not any(span.fg == "threshold" for line in far for span in line)


def test_noise_does_not_fill_the_axis() -> None:
    lines = words(chart_of([1.21 + 0.001 * (i % 3) for i in range(300)], least_span=0.1), 60, 12)
    inked = [line for line in lines[1:-1] if line.partition("│")[2].strip()]
    assert len(inked) <= 2


def test_a_log_axis_says_so() -> None:
    values = [0.3] * 200 + [0.3 * 2**i for i in range(10)]
    assert "log y" in words(chart_of(values), 60, 8)[-1]


def test_on_a_log_axis_a_letter_stands_at_the_newest_value_that_the_axis_has() -> None:
    falling, never = (
        replace(curve(values), label=label) for values, label in (([4.0, 2.0, 1.0, -1.0], "a"), ([-1.0] * 4, "b"))
    )
    chart = Chart("score", (falling, never), key=1, log_y=True)
    text = "\n".join(words(chart, 40, 8))
    assert text.count("a") == 1
    assert "b" not in text


def test_curves_carry_letters() -> None:
    run = sample.moe()
    chart = next(chart for chart in first_screen(run, UNICODE).charts if chart.number == "2")
    body = "".join(words(chart, 70, 12)[1:-1])
    assert {"a", "b", "c"} <= set(body)
    assert "a=web" in words(chart, 70, 12)[0]


@settings(deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60),
    st.integers(1, 120),
    st.integers(1, 30),
    st.sampled_from([UNICODE, ASCII]),
    st.sampled_from([None, True]),
)
def test_any_values_in_any_room(values: list[float], width: int, height: int, glyphs: Glyphs, log: bool | None) -> None:
    words(chart_of(values, log_y=log, clip_start=True, number="3", value="1", beside="x" * 200), width, height, glyphs)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_sample_draws(run: object) -> None:
    assert not isinstance(run, str)
    first = first_screen(run, UNICODE)  # type: ignore[arg-type]
    assert len(first.charts) + len(first.absent) == 9
    for chart in first.charts:
        words(chart, 44, 8)


def test_what_does_not_apply_is_not_what_is_missing() -> None:
    absent = {one.title: one for one in first_screen(sample.healthy(), UNICODE).absent}
    assert absent["MaxVio"].verdict == Verdict.NOT_APPLICABLE
    assert absent["output AbsMax"].verdict == Verdict.NO_DATA
    assert "log max" in absent["output AbsMax"].reason


def test_experts_in_the_config_make_experts_missing() -> None:
    run = replace(sample.healthy(), facts={"num_experts": 64.0})
    absent = {one.title: one for one in first_screen(run, UNICODE).absent}
    assert absent["MaxVio"].verdict == Verdict.NO_DATA


def test_rl_runs_show_reward_and_the_like() -> None:
    titles = [chart.title for chart in first_screen(sample.rl(), UNICODE).charts]
    assert {"reward", "KL to the reference", "policy entropy", "response length"} <= set(titles)
    assert "MaxVio" not in titles


def test_a_chart_keeps_its_key_while_the_data_is_the_same() -> None:
    one, two = (first_screen(sample.co_spike(), UNICODE) for _ in range(2))
    assert [chart.key for chart in one.charts] == [chart.key for chart in two.charts]
    run = sample.co_spike()
    view = run.series[SignalKey("loss.train")]
    longer = replace(
        view,
        steps=np.append(view.steps, 4001.0),
        values=np.append(view.values, 2.0),
        low=np.append(view.low, 2.0),
        high=np.append(view.high, 2.0),
        attempts=np.append(view.attempts, 0),
        count=view.count + 1,
        last=2.0,
    )
    grown = first_screen(sample.with_series(run, longer), UNICODE)
    changed = [a.number for a, b in zip(one.charts, grown.charts, strict=True) if a.key != b.key]
    assert changed == ["1"]


@settings(deadline=None)
@given(st.integers(0, 12), st.integers(0, 300), st.integers(0, 100))
def test_places_never_overlap_and_stay_inside(count: int, width: int, height: int) -> None:
    places = arrange(count, width, height)
    assert len(places) <= count
    assert bool(places) == (count > 0 and width > 0 and height > 0)
    taken: set[tuple[int, int]] = set()
    for place in places:
        assert place.x >= 0
        assert place.x + place.width <= width
        assert place.y >= 0
        assert place.y + place.height <= height
        here = {(x, y) for x in range(place.x, place.x + place.width) for y in range(place.y, place.y + place.height)}
        assert not here & taken
        taken |= here


@settings(deadline=None)
@given(st.lists(st.integers(12, 90), max_size=4), st.integers(12, 90))
def test_a_picture_does_not_depend_on_what_was_drawn_before(before: list[int], width: int) -> None:
    """Labels of other widths, outliers and a first descent: all that the scale is made of."""
    values = np.geomspace(1.0, 1e5, 300)
    values[250] = 1e9
    one = chart_of(values.tolist(), clip_outliers=True)
    alone = [draw_chart(one, width, 8, UNICODE) for _ in range(2)]
    for other in before:
        draw_chart(chart_of((values / 1e7).tolist(), clip_outliers=True), other, 8, UNICODE)
        draw_chart(one, other, 8, UNICODE)
    assert draw_chart(one, width, 8, UNICODE) == alone[0] == alone[1]
