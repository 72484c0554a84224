"""Opening what may be no log: nothing stays open, nothing is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmon.tails.opening import NotRegular, open_again, open_regular


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open descriptors are counted in /proc")
def test_what_turns_out_to_be_no_file_does_not_stay_open(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for place in (tmp_path, pipe):
        for opens in (open_again, open_regular):
            with pytest.raises(NotRegular):
                opens(place)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
