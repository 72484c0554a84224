"""Keys of a part (source, shard, encoder): before the measure or behind it; what the docs name is known."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainmon.monitor.mapping import map_key

_LOGGING = Path(__file__).parents[2] / "docs" / "logging.md"


@pytest.mark.parametrize(
    ("raw", "signal"),
    [
        ("token_share/web", "source.token_share{source=web}"),
        ("data_fraction/code", "source.token_share{source=code}"),
        ("token_share/image", "modality.token_share{modality=image}"),
        ("moe/shard2/load", "moe.shard_load{shard=2}"),
        ("ep_rank_3/tokens", "moe.shard_load{shard=3}"),
        ("vision_encoder/grad_norm", "modality.encoder_grad{modality=vision}"),
        ("train/audio_tower/grad_norm", "modality.encoder_grad{modality=audio}"),
        ("model/grad_norm", "grad.norm"),
    ],
)
def test_keys_of_a_part(raw: str, signal: str) -> None:
    assert str(map_key(raw).key) == signal


def test_the_names_that_the_docs_recommend_are_known() -> None:
    rows = re.findall(r"^\| .* \| .* \| (`.*) \|$", _LOGGING.read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) >= 11, names
    assert [name for name in names if map_key(name).rank >= 1 << 30] == []
