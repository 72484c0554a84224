"""Settings beside a log: thresholds and facts, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainmon.monitor.settings import Settings
from trainmon.monitor.thresholds import Thresholds


def read(name: str, content: str) -> Settings:
    settings = Settings()
    settings.read(f"run/{name}", content.encode())
    return settings


def test_thresholds_of_the_run_lie_under_those_of_the_command_line() -> None:
    settings = read("trainmon.toml", '[thresholds]\n"spike.z" = 9\n[thresholds.memory]\nwarn = 0.8\n')
    limits = settings.limits(Thresholds().override({"spike.z": 4.0}, source="flag"))
    assert (limits["spike.z"], limits.source("spike.z")) == (4.0, "flag")
    assert (limits["memory.warn"], limits.source("memory.warn")) == (0.8, "run/trainmon.toml")
    assert limits.source("window") == "default"


def test_a_settings_file_can_never_name_a_command_or_a_host() -> None:
    settings = read("trainmon.toml", 'on_alert = "rm -rf /"\n[thresholds]\nwindow = 50\n[keys]\nq = "x"\n')
    assert settings.limits(Thresholds())["window"] == 50.0
    assert "keys, on_alert" in settings.problems["run/trainmon.toml"]


def test_bad_values_and_bad_syntax_are_one_clear_line() -> None:
    for content in (
        '[thresholds]\n"spike.z" = "high"\n',
        "[thresholds\n",
        '[thresholds]\n"spike.z" = nan\n',
        "a = \x00",
    ):
        settings = read("trainmon.toml", content)
        assert settings.problems["run/trainmon.toml"].startswith("run/trainmon.toml: ")
        assert not settings.limits(Thresholds()).values


def test_facts_come_from_the_trainers_own_configuration() -> None:
    assert read("config.json", '{"max_steps": 500, "optim": {"grad_clip": 0.5}}').facts == {
        "total_steps": 500.0,
        "clip_threshold": 0.5,
    }
    yaml = "training:\n  max_steps: 1_000  # all\n  precision: bf16\nhooks: !!python/object/apply:os.system [ls]\n"
    assert read("config.yaml", yaml).facts == {"total_steps": 1000.0, "precision": "bf16"}
    assert read("config.toml", "[training]\nsteps = 10\nseq_len = 2048\n").facts["seq_length"] == 2048.0


def test_switches_tell_the_precision_and_deepspeed_its_global_batch() -> None:
    deepspeed = '{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}}'
    assert read("ds_config.json", deepspeed).facts == {
        "train_batch_size": 256.0,
        "batch_size": 256.0,
        "precision": "bf16",
    }
    assert read("config.yaml", "fp16: false\nbf16: true\n").facts == {"precision": "bf16"}


def test_a_nested_bomb_is_refused_and_not_followed() -> None:
    settings = read("config.json", "[" * 100_000)
    assert settings.problems
    assert not read("config.json", '{"a":' * 500 + '{"max_steps": 3}' + "}" * 500).problems


@given(st.binary(max_size=300), st.sampled_from(["trainmon.toml", "config.json", "c.yaml", "c.toml", "x.ini"]))
def test_any_bytes_are_read_without_an_exception(content: bytes, name: str) -> None:
    settings = Settings()
    settings.read(name, content)
    settings.limits(Thresholds())


def test_defaults_that_a_calibration_kept_are_its_own() -> None:
    settings = Settings()
    settings.read(
        "runs/trainmon.toml", b"schema = 1\n[calibration]\ndate = 2026-11-29T10:00:00Z\nruns = []\n[thresholds]\n"
    )
    limits = settings.limits(Thresholds())
    assert limits.source("spike.z") == "default kept by runs/trainmon.toml (calibrated 2026-11-29 on 0 runs)"
    assert limits.used("spike.z")["source"] == limits.source("spike.z")
    assert not limits.is_set("clip")
