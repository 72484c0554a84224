"""No line costs more than time in line with its length, whatever is in it: what is repeated four times as often may
take four times as long. A clock is coarse, so only what is slow and far off counts."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from time import process_time

import pytest

from trainmon.tails.formats import registry
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.formats.json_document import JsonDocument
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.line import Dialect
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.note_rules import RULES
from trainmon.tails.rule import Rule

SHORT, LONG = 8 << 10, 32 << 10
FACTOR = 12.0  # four is linear, sixteen quadratic
SLOW_S = 0.4  # a reader that takes less for the long line is no trap
PARTS = (
    *("a", "1", " ", "a ", "1 ", "=", "a=", "a=1 ", ": ", "a: 1, ", "1/", "1/2 ", "|", "│ 1 ", "-", "- 1 ", ",", "1,"),
    *("(", "[", "{", "{'a': ", "{'a': 1, ", "[1/2]", "loss ", "loss: 1 ", "step 1 ", "step=1 loss=2 ", "1 of ", "nan "),
    *(
        "10%|# | 1/2 [00:01<00:02, loss=1]",
        "1/2 [",
        "7%| | 1/2 [0:<?, 1 ",
        "1e",
        "1.",
        "a.b-",
        "10:00:00 ",
        "2024-01-01 ",
        "INFO ",
        "損失 ",
        "━",
    ),
    *("saving checkpoint ", "Traceback (most recent call last): ", "lr(a:1, ", '{"a":', '[{"a":1},', "}{", "1;", "\t"),
)
HEADS = ("", "step 10 loss: 2.5 ", '{"step": 1, "x": "', 'Traceback (most recent call last):\n  File "x", line 1\n')


def by_stdout(data: bytes) -> None:
    reader = Stdout("x.log")
    reader.feed(data, 0, 1)
    reader.finish()


def by_jsonl(data: bytes) -> None:
    reader = JsonLines("x.jsonl")
    reader.feed(data, 0, 1)
    reader.finish()


def by_csv(data: bytes) -> None:
    reader = CsvTable("x.csv")
    reader.feed(b"step,loss\n1,2.5\n" + data, 0, 1)
    reader.finish()


def by_document(data: bytes) -> None:
    JsonDocument("x.json").parse(data)


def by_detection(data: bytes) -> None:
    registry.detect(data, "x")


def cost(read: Callable[[bytes], None], head: str, part: str, size: int) -> float:
    data = (head + part * (size // len(part)) + "\n").encode()
    began = process_time()
    read(data)
    return process_time() - began


def is_slow(read: Callable[[bytes], None], head: str, part: str, size: int) -> bool:
    """Whether a line of `size` takes SLOW_S or more. Where a quarter of it takes less than a sixteenth of that, it does
    not even if the time grows with the square of the length, so that most long lines need not be read at all."""
    return cost(read, head, part, size // 4) >= SLOW_S / 4**2 and cost(read, head, part, size) >= SLOW_S


@pytest.mark.parametrize("read", [by_stdout, by_jsonl, by_csv, by_document, by_detection])
def test_a_line_that_repeats_itself_is_read_in_linear_time(read: Callable[[bytes], None]) -> None:
    for head in HEADS if read is by_stdout else HEADS[:3]:
        for part in PARTS:
            if not is_slow(read, head, part, LONG):
                continue
            short = max(min(cost(read, head, part, SHORT) for _ in range(3)), 0.005)
            long = min(cost(read, head, part, LONG) for _ in range(3))
            assert long < FACTOR * short, (head, part, short, long)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_record_that_goes_on_as_it_ends_is_read_in_linear_time(dialect: type[Dialect]) -> None:
    records = [line.decode() for sample in dialect.samples for line in sample.splitlines()[:2] if len(line.split()) > 1]
    for head in ("".join(f"{record} " for record in records[:1]), ""):
        for part in {f"{' '.join(record.split()[-2:])} " for record in records} | {f"line {one} " for one in records}:
            if not is_slow(by_stdout, head, part, 8 * SHORT):
                continue
            short = max(min(cost(by_stdout, head, part, SHORT) for _ in range(3)), 0.005)
            long = min(cost(by_stdout, head, part, 8 * SHORT) for _ in range(3))
            assert long < 2 * FACTOR * short, (head, part, short, long)  # eight is linear, 64 quadratic


@pytest.mark.parametrize("label", ["7", " ", ": "])
def test_a_bar_behind_a_label_that_does_not_end_is_read_in_linear_time(label: str) -> None:
    data = ("epoch" + label * (LONG // len(label)) + "x 7/90 [00:01<00:02, 3.00it/s, loss=2.5]\n").encode()
    began = process_time()
    by_stdout(data)
    assert process_time() - began < SLOW_S


@pytest.mark.parametrize("inner", ["", "loss ", "loss= ", "loss:  "])
def test_a_bar_with_metrics_far_apart_is_read_in_linear_time(inner: str) -> None:
    data = f" 7/90 [00:01<00:02, 3.00it/s, {inner}{' ' * LONG}, lr=1e-4]\n".encode()
    began = process_time()
    by_stdout(data)
    assert process_time() - began < SLOW_S


@pytest.mark.parametrize("form", ["{} ", "{}: ", "{}", "x {} x "])
def test_no_rule_searches_the_rest_of_a_line_for_each_of_its_words(form: str) -> None:
    def time(rule: Rule, token: str, size: int) -> float:
        part = form.format(token)
        text = part * (size // len(part))
        began = process_time()
        for pattern in (rule.pattern, rule.unless):
            if pattern is not None:
                pattern.search(text)
        return process_time() - began

    for rule in RULES:
        for token in rule.tokens:
            if time(rule, token, 16_000) < 0.1:
                continue
            short = max(min(time(rule, token, 2000) for _ in range(3)), 0.001)
            long = min(time(rule, token, 16_000) for _ in range(3))
            assert long < 24 * short, (rule.kind, token, short, long)  # eight is linear, 64 quadratic


@pytest.mark.parametrize("opening", ['{"a":', "[", '{"loss": ', "{'a': "])
def test_values_nested_without_end_hide_nothing_after_them(opening: str) -> None:
    good = "".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(6))
    closing = {"{": "}", "[": "]"}[opening[0]]
    for bomb in (opening * 50_000, '{"step": 9, "x": ' + opening * 5000 + "1" + closing * 5000 + "}"):
        data = (good + bomb + "\n" + good.replace('"step": ', '"step": 1')).encode()
        found = registry.detect(data[:65536], "m.jsonl")
        assert isinstance(found, JsonLines | Stdout)
        parsed = found.feed(data, 0, 1)
        parsed.add(found.finish())
        assert parsed.records == 12


def test_lines_of_ever_other_keys_make_few_expressions() -> None:
    """An expression costs milliseconds: as many are made as are kept, and one more for each line that comes again."""
    rng = random.Random(3)
    names = [f"{group}/{key}" for group in ("grad", "moe", "mem") for key in "abcdefghij"]
    lines = [
        f"step {at} | loss {3 - at / 999:.4f} | "
        + " | ".join(f"{name} {rng.random():.4f}" for name in rng.sample(names, 6))
        for at in range(400)
    ]
    reader = Stdout("log")
    parsed = reader.feed("".join(f"{line}\n" for line in lines).encode(), 0, 1)
    assert parsed.records + reader.finish().records == 400
    assert reader._sink.templates.added <= 40


def test_an_empty_line_asks_nothing_of_anyone() -> None:
    """Some writers leave them by the hundred million; none is worth as much as one call."""
    calls, empty = 0, 5000
    reader = Stdout("x.log")
    reader.feed(b"step 1 loss 2.5\nstep 2 loss 2.4\n", 0, 1)

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        reader.feed(b"\n" * empty + b"step 3 loss 2.3\n", 32, 3)
    finally:
        sys.setprofile(None)
    assert calls < empty
