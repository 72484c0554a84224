"""A real Slurm for the tests of one process: started when the first of them asks, ended with the last."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conftest import in_ci
from tests.slurmd import Cluster, missing


def start(slurm: Cluster) -> Iterator[Cluster]:
    """`slurm`, running. Skips where it cannot; fails instead in CI and with TRAINMON_REQUIRE_SERVERS=1."""
    lacking = missing()
    if lacking and (os.environ.get("TRAINMON_REQUIRE_SERVERS", "") == "1" or in_ci()):
        pytest.fail(f"{lacking}; in CI this may not be skipped", pytrace=False)
    if lacking:
        pytest.skip(lacking)
    try:
        slurm.start()
        yield slurm
    finally:
        slurm.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Slurm with accounting."""
    yield from start(Cluster(tmp_path_factory.mktemp("s")))  # a short name: the path of a socket has 107 bytes
