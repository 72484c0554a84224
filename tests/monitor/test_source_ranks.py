"""Which rank wrote which file of a run."""

from __future__ import annotations

import pytest

from trainmon.monitor.source_ranks import ranks_of


@pytest.mark.parametrize(
    "pattern",
    [
        *("rank{}.log", "run_rank-{}.log", "worker-{}.log", "proc_{}.log", "task-{}.out", "local_rank{}.log"),
        *("gpu{}.log", "node0{}.log", "host-{}.txt", "train_node{}.log", "device.{}.log", "out.{}", "train.log.{}"),
        *("rank_{}/train.log", "node-{}/out.log", "r/attempt_0/{}/stdout.log", "r/attempt_0/{}/train.log"),
        *("1/rank.{}/stdout", "global_rank_{}.log"),
    ],
)
def test_files_that_differ_in_a_number_of_a_process_are_ranks(pattern: str) -> None:
    paths = [f"/home/node7/exp/{pattern.format(number)}" for number in range(3)]
    assert ranks_of([*paths, "/home/node7/exp/metrics.jsonl"]) == dict(zip(paths, "012", strict=True))


@pytest.mark.parametrize(
    "paths",
    [
        ["gpu3.log"],
        ["gpu3/train.log", "gpu3/metrics.jsonl"],
        ["log.1", "log.2"],
        ["train-2026-01-01.log", "train-2026-01-02.log"],
        ["events.out.tfevents.1700000000.host1.7.0", "events.out.tfevents.1700000999.host1.9.0"],
        ["attempt_0/0/stdout.log", "attempt_1/0/stdout.log"],
        ["worker-0.out", "worker-0.err"],
    ],
)
def test_other_files_are_not(paths: list[str]) -> None:
    assert ranks_of(paths) == {}


def test_both_streams_of_a_rank_are_that_rank_s() -> None:
    paths = [f"worker-{rank}.{end}" for rank in range(2) for end in ("out", "err")]
    assert list(ranks_of(paths).values()) == ["0", "0", "1", "1"]


def test_processes_of_several_nodes_have_global_ranks() -> None:
    assert list(ranks_of([f"node{n}/worker-{w}.log" for n in (0, 1) for w in (0, 1, 2)]).values()) == list("012345")
    assert list(ranks_of([f"node{n}_gpu{w}.log" for n in (0, 1) for w in (0, 1)]).values()) == list("0123")
    assert list(ranks_of(["node0/worker-0.log", "node0/worker-1.log", "node1/worker-2.log"]).values()) == list("012")
    assert list(ranks_of([f"node{n}/gpu{w}.log" for n in (4, 7) for w in (0, 1)]).values()) == [
        *("4.0", "4.1", "7.0", "7.1")
    ]


def test_a_global_rank_tells_more_than_a_node() -> None:
    assert list(ranks_of(["node0/rank0.log", "node0/rank1.log", "node1/rank2.log"]).values()) == list("012")
