"""Far sides: one with python3 and one with a bare shell, and our end of the connections to them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sshd import Sshd
from tests.tails.ssh.server import Near, bare_path, options_for, server


@pytest.fixture(scope="session")
def sockets() -> Iterator[Path]:
    """A short path: a socket's may have some 100 bytes."""
    place = Path(tempfile.mkdtemp(prefix="tm-"))
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def private(sockets: Path) -> Iterator[None]:
    """Shared connections of these tests lie in a directory of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(sockets))
        yield


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A host with python3."""
    with server(tmp_path_factory.mktemp("python") / "s") as made:
        yield made


@pytest.fixture(scope="session")
def bare_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A host without python3."""
    home = tmp_path_factory.mktemp("bare")
    with server(home / "s", path=bare_path(home)) as made:
        yield made


@pytest.fixture(scope="session", params=["python", "shell"])
def far(request: pytest.FixtureRequest) -> Sshd:
    """Both kinds of far side, for what must hold on each."""
    name = "sshd" if request.param == "python" else "bare_sshd"
    made: Sshd = request.getfixturevalue(name)
    return made


@pytest.fixture(scope="session")
def shared_near(far: Sshd, private: None) -> Iterator[Near]:
    """One connection for all tests that leave it alone."""
    near = Near(options_for(far))
    yield near
    near.close()


@pytest.fixture
def connect(private: None) -> Iterator[Callable[..., Near]]:
    """Makes connections that end with the test."""
    made: list[Near] = []

    def make(sshd: Sshd, **options: object) -> Near:
        made.append(Near(options_for(sshd, **options)))
        return made[-1]

    yield make
    for near in made:
        near.close()
