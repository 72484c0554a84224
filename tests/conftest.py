"""What every test may use: needs that skip at home and fail in CI, the corpus, a log that a test can grow."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

from tests.sshd import sshd as sshd  # a fixture: its name here makes it known to every test

# A slow machine fails no test: what hypothesis says of time is no word on the code. In CI the examples are always the
# same ones, so that a change is told only what is due to it; new ones are met wherever else the tests run.
settings.register_profile(
    "any machine",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")
os.environ["TRAINMON_CACHE"] = "off"  # no test reads or leaves anything in the user's cache
ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("TRAINMON_CORPUS", ROOT.parent / "shared" / "corpus"))


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else f"{name} is not installed"


# What `@pytest.mark.requires(NAME)` may name -> what is missing, "" when nothing is.
NEEDS: dict[str, Callable[[], str]] = {
    "tmux": _program("tmux"),
    "git": _program("git"),
    "root": lambda: "" if os.geteuid() == 0 else "this needs to run as root",
    "not-root": lambda: "" if os.geteuid() != 0 else "root may read everything",
    "checkout": lambda: "" if (ROOT / "pyproject.toml").is_file() else "this is no source checkout",
}


def in_ci() -> bool:
    """Whether nothing that a test needs may be missing."""
    return any(os.environ.get(name, "").lower() in ("1", "true") for name in ("TRAINMON_CI", "CI"))


def lacking(reason: str) -> NoReturn:
    """Ends the test for want of something: a skip at home, a failure in CI, where a skip would hide it."""
    if in_ci():
        pytest.fail(f"{reason}; in CI this may not be skipped", pytrace=False)
    pytest.skip(reason)


def pytest_configure(config: pytest.Config) -> None:
    # Whoever starts the tests in the background makes these ignored, for all that the tests start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # What trainmon keeps for its user is never that of whoever runs the tests.
    home = tempfile.mkdtemp(prefix="trainmon-tests-")
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        os.environ[name] = str(Path(home) / name[4:-5].lower())
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    config.addinivalue_line("markers", f"requires(name): needs one of {', '.join(NEEDS)}; skips at home, fails in CI")
    config.addinivalue_line("markers", "slow: takes more than some seconds")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("requires"):
        for name in marker.args:
            missing = NEEDS[name]()
            # Root is what CI runs as, so a test for other users can only ever be skipped there.
            if missing and name == "not-root":
                pytest.skip(missing)
            if missing:
                lacking(missing)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real public logs that lies beside the developers' checkout, in no one else's."""
    if not (CORPUS / "facts.json").is_file():
        pytest.skip(f"no corpus at {CORPUS} (set TRAINMON_CORPUS)")
    return CORPUS
