"""The three links that make the folders one package. A .zip download turns them into text files."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import ROOT

LINKS = ("tui", "monitor", "tails")
REMEDY = (
    "trainmon/{name} must be a link to ../{name}. Downloads as .zip and checkouts with core.symlinks=false turn it "
    "into a text file: clone with git, or run `ln -sfn ../{name} trainmon/{name}`"
)


@pytest.mark.requires("checkout")
@pytest.mark.parametrize("name", LINKS)
def test_the_package_links_to_the_folder(name: str) -> None:
    link = ROOT / "trainmon" / name
    assert link.is_symlink(), REMEDY.format(name=name)
    assert link.readlink().as_posix() == f"../{name}", REMEDY.format(name=name)
    assert (link / "__init__.py").is_file(), REMEDY.format(name=name)


@pytest.mark.requires("checkout", "git")
@pytest.mark.parametrize("name", LINKS)
def test_git_keeps_the_link(name: str) -> None:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-s", f"trainmon/{name}"], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert listed.stdout.startswith("120000 "), REMEDY.format(name=name)


@pytest.mark.requires("checkout")
def test_every_source_folder_is_a_package() -> None:
    folders = {path.parent for name in (*LINKS, "tests") for path in (ROOT / name).rglob("*.py")}
    bare = sorted(str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file())
    assert not bare, f"without __init__.py: {', '.join(bare)}"


@pytest.mark.requires("checkout")
def test_only_the_clock_reads_the_time() -> None:
    banned = ("time.time(", "time.monotonic(", "datetime.now(", "datetime.utcnow(", "time.sleep(")
    # The second runs on other machines, where nothing of this project is.
    allowed = (
        ROOT / "tails" / "clock.py",
        *(ROOT / "tails" / "ssh" / name for name in ("far_files.py", "far_python.py")),
    )
    guilty = [
        f"{path.relative_to(ROOT)}: {word}"
        for name in LINKS
        for path in sorted((ROOT / name).rglob("*.py"))
        if path not in allowed
        for word in banned
        if word in path.read_text(encoding="utf-8")
    ]
    assert not guilty, "use the injected trainmon.tails.clock.Clock: " + "; ".join(guilty)
