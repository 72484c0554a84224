"""An error that did not end the run is told as one: neither as its root error, nor not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.deaths.shapes import tb
from tests.monitor.test_deaths import run_of
from tests.tails.formats.stdout_reading import kinds, read
from trainmon.monitor.check import report
from trainmon.monitor.document import run_document

FIRST = "".join(f"step {at} loss {3 - at / 90:.4f}\n" for at in range(10, 60, 10))
SECOND = "".join(f"step {at} loss {3 - at / 90:.4f}\n" for at in range(40, 120, 10))


@pytest.mark.parametrize("end", ["", "Training finished.\n"])
def test_the_error_of_a_start_that_another_followed(tmp_path: Path, end: str) -> None:
    run = run_of(tmp_path, f"{FIRST}{tb('IndexError: list index out of range')}{SECOND}{end}")
    assert (run.root_error, run.outlived_error) == ("IndexError: list index out of range",) * 2
    assert len(run.attempts) == 2
    told = run_document(run)
    assert (told["root_error"], told["outlived_error"]) == ("IndexError: list index out of range",) * 2
    assert "outlived   IndexError: list index out of range" in report(run)


def test_the_error_that_ended_the_last_start_is_the_root(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"{FIRST}{tb('IndexError: early')}{SECOND}{tb('KeyError: late')}")
    assert (run.root_error, run.outlived_error) == ("KeyError: late", None)


@pytest.mark.parametrize("between", ["", "GPU 0 util 93%\n", "[dataloader] 12 shards open\nGPU 0 util 93%\n"])
@pytest.mark.parametrize("said", ["WARNING:root:upload failed, will retry", "fetch failed; trying again in 3 s"])
def test_others_may_write_between_a_warning_and_its_traceback(said: str, between: str) -> None:
    caught = f"{FIRST}{said}\n{between}{tb('OSError: busy')}"
    assert kinds(read(caught), teardown=False) == []
    assert kinds(read(f"{FIRST}{said}\n" + "GPU 0 util 93%\n" * 5 + f"{tb('OSError: busy')}"), teardown=False) != []
    for cut in range(1, caught.count("\n")):
        assert read(caught, cuts=[cut]).notes == read(caught).notes
