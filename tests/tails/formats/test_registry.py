"""Telling formats apart: what the registry leaves unasked changes no answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon.tails.formats import registry

CORPUS = Path(os.environ.get("TRAINMON_CORPUS", Path(__file__).parents[4] / "shared" / "corpus"))
HEADS = [
    b'{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.25}\n',
    b'\xef\xbb\xbf{"step": 1, "loss": 2.5}\n',
    b'\n\n  {"log_history": [{"step": 1, "loss": 2.0}]}\n',
    b'[{"step": 1, "loss": 2.0}]',
    b"step,loss\n1,2.5\n2,2.25\n",
    b'#{"created": 1}\nstep,loss\n1,2.5\n',
    b" iteration 10/100 | lm loss: 2.5E+00 |\n",
    b"starting up {'a': 1}\n{'loss': 2.5}\n",
    b"PAR1\x15\x04",
    b":W&B\xe1\xbe\x00",
    b"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00",
    b"\x00" * 64,
    b"",
]


def asked_of_all(head: bytes) -> str | None:
    """What `registry.detect` says when every format is asked."""
    best, best_score = None, 0.0
    for name in registry.FORMATS:
        score = registry.format_class(name).sniff(head)
        if score > best_score:
            best, best_score = name, score
    return best


def told(head: bytes) -> str | None:
    found = registry.detect(head, "log")
    return None if found is None else next(n for n in registry.FORMATS if registry.format_class(n) is type(found))


@pytest.mark.parametrize("head", HEADS)
def test_formats_left_unasked_would_not_have_won(head: bytes) -> None:
    assert told(head) == asked_of_all(head)


@given(st.sampled_from(HEADS), st.binary(max_size=12), st.integers(0, 40))
def test_nor_with_bytes_in_other_places(head: bytes, more: bytes, at: int) -> None:
    mixed = head[:at] + more + head[at:]
    assert told(mixed) == asked_of_all(mixed)


def test_nor_in_any_public_log() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file() and path.suffix not in (".tsv", ".json", ".md")]
    if not files:
        pytest.skip(f"no corpus at {CORPUS}")
    for path in files:
        with path.open("rb") as file:
            head = file.read(1 << 16)
        assert told(head) == asked_of_all(head), path.name


def test_a_text_log_imports_no_reader_of_other_formats() -> None:
    code = (
        "import sys; from trainmon.tails.formats import registry;"
        "registry.detect(b'iteration 1 | loss: 2.0\\n' * 9, 'x');"
        "print(*[name for name in sys.modules if name.startswith('trainmon.tails.formats.')]);"
        "print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, uses_metadata = done.stdout.splitlines()
    assert uses_metadata == "False"
    others = {f"trainmon.tails.formats.{name}" for name in ("json_reading", "tf_scan", "wandb_record", "parquet")}
    assert not others & set(modules.split())


def test_a_log_that_begins_with_its_settings_as_json_is_no_document() -> None:
    settings = b'{\n  "lr": 0.001,\n  "betas": [\n    0.9,\n    0.95\n  ]\n}\n'
    found = [registry.detect(settings + behind, "log") for behind in (b"step 1 loss 2.5\n", b"\n\nstep 1 loss 2.5\n")]
    assert [one.name for one in found if one is not None] == ["stdout", "stdout"]
    for behind in (b"", b"\n", b'{\n  "lr": 0.1\n}\n', b"]\n"):
        document = registry.detect(settings + behind, "log")
        assert document is not None
        assert document.name == "json"
