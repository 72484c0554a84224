"""trainmon: a terminal monitor for language-model training runs.

Importing this package costs nothing: the folders behind it are loaded when they are used.
"""

from importlib import metadata


def version() -> str:
    """The installed version, or ``"0+uninstalled"`` when run from a bare checkout."""
    try:
        return metadata.version("trainmon")
    except metadata.PackageNotFoundError:
        return "0+uninstalled"
