from __future__ import annotations

import pytest

from trainmon.tails.prefix import read_prefix
from trainmon.tails.record import TimeKind

CASES = [
    ("[rank6]:[titan] 2026-05-03 02:00:31,461 - root - INFO - step: 1", "step: 1", "6", TimeKind.NAIVE),
    ("[ip-26-0-147-189:1]: iteration 3910/ 25533 |", "iteration 3910/ 25533 |", "1", TimeKind.NONE),
    ("ip-26-0-147-189 iteration 10/500 | lm loss", "iteration 10/500 | lm loss", "", TimeKind.NONE),
    ("2024-01-01 10:00:00 node-07:  step 5 loss", "step 5 loss", "7", TimeKind.NAIVE),
    ("[default3]: step 5 loss", "step 5 loss", "3", TimeKind.NONE),
    ("worker-3: step 5 loss", "step 5 loss", "3", TimeKind.NONE),
    ("[2023-11-09 22:24:27 vit_6b] (main.py 506): INFO Train: [0/10]", "Train: [0/10]", "", TimeKind.NAIVE),
    ("0: INFO    25-07-08 21:42:06.537541 - 0:00:08 - Run launched", "Run launched", "0", TimeKind.NAIVE),
    ("[INFO|2024-11-26 22:09:01] logging.py:157 >> {'loss'", "{'loss'", "", TimeKind.NAIVE),
    (
        "I0813 17:29:23.920936 138898490059648 metric_logger.py:226] completed step",
        "completed step",
        "",
        TimeKind.NAIVE,
    ),
    (
        "2024-08-04T16:58:26.463740871Z 08/04/2024 09:58:26 - INFO - __main__ -   Step: 143",
        "Step: 143",
        "",
        TimeKind.ABSOLUTE,
    ),
    ("(TaskRunner pid=14640) step:101 - a", "step:101 - a", "", TimeKind.NONE),
    (" 0: :::MLLOG {", ":::MLLOG {", "0", TimeKind.NONE),
    (
        "v100x16-1: [rank0]:[E410 17:25:53.848542300 ProcessGroupNCCL.cpp:2241] [PG ID 1",
        "[PG ID 1",
        "0",
        TimeKind.NAIVE,
    ),
    ("05:47:42.417 [I] Progress on: 1", "Progress on: 1", "", TimeKind.NAIVE),
    (
        "2025-01-01 10:00:00 host123 olmo_core.train.callbacks:83 INFO [step=1/1000]",
        "[step=1/1000]",
        "",
        TimeKind.NAIVE,
    ),
    ("INFO:__main__:step 10", "step 10", "", TimeKind.NONE),
    ("2025-01-15 10:00:00.123 | INFO     | __main__:train:12 - step 10", "step 10", "", TimeKind.NAIVE),
    ("2025-01-15T10:00:00.1Z [info     ] step=10", "step=10", "", TimeKind.ABSOLUTE),
    ("[2025-01-15 10:00:00,123][src.loop][INFO] - step 10", "step 10", "", TimeKind.NAIVE),
    ("[2025-01-15 10:00:00][INFO][rank 2][train.py:88] step 10", "step 10", "2", TimeKind.NAIVE),
    ("01/15/2025 02:00:00 PM INFO: step 10", "step 10", "", TimeKind.NAIVE),
    ("[01/15/25 10:00:00] INFO     step 10", "step 10", "", TimeKind.NAIVE),
    ("15-Jan-2025 10:00:00 step 10", "step 10", "", TimeKind.NAIVE),
    ("[Wed Jan 15 10:00:00 2025] step 10", "step 10", "", TimeKind.NAIVE),
    ("Jan 15 10:00:00 gpu-node-01 python[12345]: step 10", "step 10", "", TimeKind.NAIVE),
    ("2025-01-15T10:00:00.1+00:00 gpu01 train[991]: step 10", "step 10", "", TimeKind.ABSOLUTE),
    ("Jan 15 10:00:00 step 10", "step 10", "", TimeKind.NAIVE),
    ("Jan 15 10:00:00 iter 10: loss 2.5", "iter 10: loss 2.5", "", TimeKind.NAIVE),
    ("[rank: 3] [2025-01-15 10:00:00][INFO] step 10", "step 10", "3", TimeKind.NAIVE),
    ("2025-01-15T10:00:00.1Z ##[error]Process completed", "Process completed", "", TimeKind.ABSOLUTE),
    ("Jan 15 10:00:00  3: step 10", "step 10", "3", TimeKind.NAIVE),
    ("Jan 15 10:00:00  3: 2025-01-15 10:00:00 INFO step 10", "step 10", "3", TimeKind.NAIVE),
    ("[2025-01-15 10:00:00] gpu-node-01: Traceback (most", "Traceback (most", "", TimeKind.NAIVE),
    ('[2025-01-15 10:00:00] gpu-node-01:   File "train.py"', 'File "train.py"', "", TimeKind.NAIVE),
    ("[2025-01-15 10:00:00] gpu-node-01: ValueError: no", "ValueError: no", "", TimeKind.NAIVE),
    ("[2025-01-15 10:00:00] top-5: 0.25 loss", "top-5: 0.25 loss", "", TimeKind.NAIVE),
    ("Jan 15 10:00:00 gradient norm: 2.5", "gradient norm: 2.5", "", TimeKind.NAIVE),
    ('Jan 15 10:00:00   File "train.py"', 'File "train.py"', "", TimeKind.NAIVE),
    ("10:00:00 SUCCESS Step 10 | Loss", "Step 10 | Loss", "", TimeKind.NAIVE),
    ("gpu[01-04]: Traceback (most recent", "Traceback (most recent", "", TimeKind.NONE),
    ("gpu[1,3-7]: step 10", "step 10", "", TimeKind.NONE),
    ("train-worker-0 pytorch I0115 10:00:00.123456 9 writer.py:48] [10] loss", "[10] loss", "", TimeKind.NAIVE),
    ("train-worker-0 pytorch Traceback (most recent", "Traceback (most recent", "", TimeKind.NONE),
    ("train-worker-0 pytorch     main()", "main()", "", TimeKind.NONE),
    ("train-worker-0 pytorch 10:00:00 SUCCESS Step 10", "Step 10", "", TimeKind.NAIVE),
    ("train-worker-0 pytorch ValueError: no", "ValueError: no", "", TimeKind.NONE),
    ("top-5 acc    0.25", "top-5 acc    0.25", "", TimeKind.NONE),
    ("1736935200.123 step 10", "step 10", "", TimeKind.ABSOLUTE),
    ("I20250115 10:00:00.123456 139887 train.py:55] step 10", "step 10", "", TimeKind.NAIVE),
    ("I20250115 10:00:00 139887 dinov2 helpers.py:102] step 10", "step 10", "", TimeKind.NAIVE),
    ("[1,mpirank:3,algo-1]<stdout>:step 10", "step 10", "3", TimeKind.NONE),
    ("[1,3]<stderr>:step 10", "step 10", "3", TimeKind.NONE),
    ("[pod/train-0-abc/pytorch] step 10", "step 10", "", TimeKind.NONE),
    ("2025-01-15T10:00:00.1Z stdout F step 10", "step 10", "", TimeKind.ABSOLUTE),
    ("trainer-1  | step 10", "step 10", "", TimeKind.NONE),
    ("01/15/2025 10:00:00 [INFO|DP=0|PP=0|TP=0|ip-26-0]: iteration: 1", "iteration: 1", "", TimeKind.NAIVE),
    ("2024-03-01 10:00:00.1\tnid1:0\tolmo.train:815\tINFO\t[step=1/7]", "[step=1/7]", "", TimeKind.NAIVE),
    ("\u2728 step 10", "step 10", "", TimeKind.NONE),
    ("==> step 10", "step 10", "", TimeKind.NONE),
    ("[NeMo I 2024-09-28 17:42:43 adapter_mixins:435] Unfrozen", "Unfrozen", "", TimeKind.NAIVE),
]
PLAIN = [
    "step     0 | loss: 10",
    " iteration 5/6 |",
    "loss: 2.5",
    "12: 5",
    "top5: 0.3",
    "Epoch 1: 2",
    "    train/CE loss=11.2",
    "[step=1/10]",
    "",
    "2024-13-45 99:99:99 x",
    "step-10 | loss 2.5 |",
    "May 12 loss",
    "1736935200000 2.31 10",
    "=====",
]


@pytest.mark.parametrize(("text", "words", "rank", "kind"), CASES)
def test_prefixes(text: str, words: str, rank: str, kind: TimeKind) -> None:
    prefix = read_prefix(text)
    assert text[prefix.at :].lstrip() == words
    assert prefix.rank == rank
    assert prefix.time_kind is kind
    assert (prefix.time is None) == (kind is TimeKind.NONE)


@pytest.mark.parametrize("text", PLAIN)
def test_lines_without_a_prefix(text: str) -> None:
    assert text[read_prefix(text).at :].strip() == text.strip() or text.startswith("2024-13")


def test_a_zoned_time_is_absolute() -> None:
    assert read_prefix("1970-01-02T00:00:01.500Z step").time == 86401.5
    assert read_prefix("1970-01-01T02:00:00+02:00 step").time == 0.0


def test_differences_of_naive_times_are_seconds() -> None:
    lines = ["2024-03-10 01:59:59,500 x", "2024-03-10 03:00:00,000 x"]
    first, second = (read_prefix(line).time for line in lines)
    assert first is not None
    assert second is not None
    assert second - first == 3600.5


def test_warnings_are_told() -> None:
    assert read_prefix("W0530 14:48:26.433000 2622492 site-packages/a.py:1233] Traceback").is_warning
    assert not read_prefix("E0530 14:48:26.433000 2622492 site-packages/a.py:1233] Traceback").is_warning
