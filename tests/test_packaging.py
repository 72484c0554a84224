"""What is built is what is in the repository, and works where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT, lacking

# In one process, or each would build the wheel for itself.
pytestmark = [pytest.mark.slow, pytest.mark.requires("checkout"), pytest.mark.xdist_group("packaging")]


def run(*command: str | Path, cwd: Path, status: tuple[int, ...] = (0,)) -> str:
    """The standard output of `command`, run without this environment's own paths."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode in status, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make_venv(folder: Path) -> Path:
    """The Python of a new virtual environment."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def install(python: Path, *what: str | Path) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *map(str, what)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode and "No matching distribution" in done.stderr:
        lacking("no package index can be reached")
    assert not done.returncode, done.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive, built by the declared back end."""
    folder = tmp_path_factory.mktemp("build")
    python = make_venv(folder / "venv")
    install(python, "hatchling")
    run(python, "-m", "hatchling", "build", "-d", folder / "dist", cwd=ROOT)
    return folder / "dist"


def sources() -> set[str]:
    """Every file of the package, as the wheel should hold it."""
    found = {f"trainmon/{path.name}" for path in (ROOT / "trainmon").iterdir() if path.is_file()}
    for folder in (ROOT / "trainmon" / "commands", ROOT / "tui", ROOT / "monitor", ROOT / "tails"):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found.add(f"trainmon/{folder.name}/{path.relative_to(folder)}")
    return found


def test_the_wheel_holds_every_source_file(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        licences = [name for name in wheel.namelist() if name.endswith("LICENSE")]
    assert names == sources()
    assert licences


def test_the_source_archive_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = next(tmp_path.iterdir())
    assert (unpacked / "tests" / "test_layout.py").is_file()
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path / "again", unpacked, cwd=tmp_path)
    with zipfile.ZipFile(next((tmp_path / "again").glob("*.whl"))) as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == sources()


def test_the_installed_wheel_works_anywhere(dist: Path, tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv")
    install(python, next(dist.glob("*.whl")))
    trainmon = python.parent / "trainmon"
    # A training repository often has folders of these names; they must not be taken for ours.
    project = tmp_path / "project"
    for name in ("monitor", "tails", "tui"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("raise RuntimeError('the wrong folder was imported')\n")
    assert "0.1.0" in run(trainmon, "--version", cwd=project)
    assert "0.1.0" in run(python, "-m", "trainmon", "--version", cwd=project)
    assert "watch" in run(trainmon, "--help", cwd=project)
    run(trainmon, "demo", "--out", project / "runs", cwd=project)
    assert "FAIL" in run(trainmon, "check", project / "runs", cwd=project, status=(1,))
    assert "loss.train" in run(trainmon, "export", project / "runs", "-s", "loss.train", cwd=project)


SMOKE = (
    "tests/test_pty.py::test_a_new_value_appears_and_q_leaves_the_terminal_as_it_was",
    "tests/test_cli.py::test_exit_status_of_check",
    "tests/monitor/test_document.py",
    "tests/monitor/test_headless.py",
    "tests/monitor/test_report.py::test_no_line_ends_a_fence",
    "tests/tails/formats/test_csv_table.py",
    "tests/tails/formats/test_jsonl_properties.py",
    "tests/tails/formats/test_tfevents.py",
    "tests/tails/formats/test_wandb_offline.py",
    "tests/tails/test_parsed_cache.py",
    "tests/tails/test_quick_dataclass.py",
    "tests/tui/test_chart.py",
    "tests/tui/test_seen.py",
)


def pass_a_few_tests(python: Path) -> None:
    command = [str(python), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SMOKE]
    tested = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert not tested.returncode, tested.stdout[-3000:]


def test_the_lowest_declared_versions_work(dist: Path, tmp_path: Path) -> None:
    """Each direct dependency in the lowest version that pyproject.toml allows: commands, a screen, a few tests."""
    python = make_venv(tmp_path / "venv")
    install(python, "uv")
    uv, lowest = python.parent / "uv", tmp_path / "lowest.txt"
    compiling = [uv, "pip", "compile", "-q", "--resolution", "lowest-direct", "--python", python, "-o", lowest]
    done = subprocess.run([*compiling, ROOT / "pyproject.toml"], capture_output=True, text=True, check=False)
    if done.returncode and "No solution" not in done.stderr:
        lacking(f"no package index can be reached: {done.stderr.strip()[-200:]}")
    assert not done.returncode, done.stderr
    assert "textual==6.0.0" in lowest.read_text()
    install(python, "-r", lowest)
    install(python, "--no-deps", next(dist.glob("*.whl")))
    trainmon = python.parent / "trainmon"
    assert "0.1.0" in run(trainmon, "--version", cwd=tmp_path)
    run(trainmon, "demo", "--out", tmp_path / "runs", cwd=tmp_path)
    assert "FAIL" in run(trainmon, "check", tmp_path / "runs", cwd=tmp_path, status=(1,))
    run(trainmon, "check", "--nonsense", cwd=tmp_path, status=(2,))
    install(python, "-c", lowest, "pytest>=8.2,<9", "hypothesis", "pytest-asyncio", "pyte")
    pass_a_few_tests(python)


def python_of(version: str) -> str:
    """A Python of this version, on the path or beside the others of pyenv; "" where there is none that starts."""
    kept = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    for found in (shutil.which(f"python{version}"), *kept):
        if found is None:
            continue
        asked = [found, "-c", "import venv, ensurepip, sys; print(*sys.version_info[:2], sep='.')"]
        if subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == version:
            return str(found)
    return ""


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_later_pythons_work_where_the_machine_has_them(dist: Path, tmp_path: Path, version: str) -> None:
    base = python_of(version)
    if not base:
        pytest.skip(f"this machine has no Python {version}")
    run(base, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    install(python, next(dist.glob("*.whl")), "pytest>=8.2,<9", "hypothesis", "pytest-asyncio", "pyte")
    run(python.parent / "trainmon", "demo", "--out", tmp_path / "runs", cwd=tmp_path)
    assert "FAIL" in run(python.parent / "trainmon", "check", tmp_path / "runs", cwd=tmp_path, status=(1,))
    pass_a_few_tests(python)
