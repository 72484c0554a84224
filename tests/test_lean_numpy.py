"""NumPy without its slow parts is NumPy still."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_PARTS = """
import sys
from trainmon.lean_numpy import put_off
put_off()
import numpy as np
assert "numpy._typing._array_like" not in sys.modules
from numpy.typing import NDArray
"""


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "assert str(NDArray[np.float64]).startswith('numpy.ndarray[tuple[typing.Any, ...], numpy.dtype[')",
        "import numpy.typing as npt; assert npt.NDArray is NDArray; npt.ArrayLike, npt.DTypeLike",
        "import numpy.typing; numpy.typing.DTypeLike; np.typing.ArrayLike",
        "from numpy.typing import ArrayLike; import numpy.typing as npt; assert npt.ArrayLike is ArrayLike",
        "from numpy._typing import _ArrayLikeFloat_co",
        "import numpy._typing._dtype_like as part; part.DTypeLike",
        "from numpy._typing import _dtype_like; _dtype_like.DTypeLike",
        "import numpy.ma, numpy.random, numpy.polynomial, numpy.fft, numpy.linalg, numpy.testing",
        "assert not hasattr(np.typing, 'no_such_name')",
        "import inspect; inspect.signature(np.linalg.svd)",
        "import pickle; assert pickle.loads(pickle.dumps(np.arange(3.0))).sum() == 3",
    ],
)
def test_what_was_put_off_is_there_for_who_asks(code: str) -> None:
    _run(f"{_PARTS}\n{code}")


def test_where_numpy_is_loaded_nothing_is_changed() -> None:
    _run(
        "import sys, numpy\nfrom trainmon.lean_numpy import put_off\nput_off()\n"
        "assert type(sys.modules['numpy._typing']) is type(sys)"
    )


def test_a_short_command_loads_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(1, 60)))
    out = _run(
        "import json, sys\nfrom trainmon.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print('LOADED', json.dumps(sorted(sys.modules)))",
        "check",
        str(tmp_path / "metrics.jsonl"),
        "--no-history",
        "--no-slurm",
    )
    loaded = set(json.loads(out.rpartition("LOADED ")[2]))
    assert "numpy" in loaded
    of_types = {name for name in loaded if name.startswith(("numpy._typing.", "numpy.typing."))}
    assert not of_types
    assert not loaded & {"csv", "trainmon.tails.formats.csv_table"}
