"""Which host and which path a target names: ``[user@]host:/path``, ``ssh://[user@]host[:port]/path``.

Nothing of a target may become an option or a command: hosts and users are of a few harmless characters and never
begin with ``-`` (an ssh configuration may hand both to a shell, as ``%h`` and ``%r`` of a ProxyCommand).
"""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?\])"
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.+=@-]*"
_COPY = lazy(rf"(?:(?P<user>{_USER})@)?(?P<host>{_HOST}):(?P<path>[/~](?s:.*))")
_URL = lazy(rf"ssh://(?:(?P<user>{_USER})@)?(?P<host>{_HOST})(?::(?P<port>[0-9]{{1,5}}))?(?P<path>/(?s:.*))")
_SCHEME = lazy(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_WILDCARD = lazy(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Address:
    """A host as ssh is told of it; what is empty is left to the user's ssh configuration."""

    host: str
    user: str = ""
    port: int | None = None

    @property
    def name(self) -> str:
        """How it is shown, and what stands before the path in names of files.

        >>> Address("::1", "me", 2222).name
        'me@[::1]:2222'
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port is not None else "")


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A path, or a pattern of paths, on a host. Relative paths begin at the home directory there."""

    address: Address
    path: str

    @property
    def name(self) -> str:
        """How it is shown, and may be typed; also the path of the file in everything that is told of it."""
        return f"{self.address.name}:{self.path if self.path.startswith('/') else '~/' + self.path}"

    @property
    def is_pattern(self) -> bool:
        """Whether it has wildcards."""
        return has_wildcard(self.path)

    def named(self, name: str) -> RemotePath:
        """The path on the same host whose `name` is this."""
        path = name.removeprefix(f"{self.address.name}:")
        return self.at(path.removeprefix("~/"))

    def at(self, path: str) -> RemotePath:
        """Another path on the same host."""
        return RemotePath(self.address, path)


def has_wildcard(path: str) -> bool:
    """Whether `path` is a pattern."""
    return _WILDCARD.search(path) is not None


def parse_remote(text: str) -> RemotePath | None:
    """What `text` names on another host; None when it has not the form of such a target.

    Raises ValueError, one line to show, for one that has the form and cannot be used.

    >>> parse_remote("me@cluster:~/runs/a.log")
    RemotePath(address=Address(host='cluster', user='me', port=None), path='runs/a.log')
    >>> parse_remote("ssh://cluster:2222/runs").address.port, parse_remote("runs/a.log"), parse_remote("-oX:/a")
    (2222, None, None)
    """
    is_url = text.startswith("ssh://")
    if not is_url and (scheme := _SCHEME.match(text)):
        raise ValueError(f"{text}: {scheme[1]}:// is not read; another host's files are ssh://USER@HOST:PORT/PATH")
    match = _URL.fullmatch(text) if is_url else _COPY.fullmatch(text)
    if match is None:
        if is_url:
            raise ValueError(f"{text}: write ssh://USER@HOST:PORT/PATH (letters, digits, and . _ - in a host's name)")
        return None
    groups = match.groupdict()
    port = int(groups["port"]) if groups.get("port") else None
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{text}: there is no port {port}; ports are 1 to 65535")
    path = groups["path"]
    if is_url and path.startswith("/~"):
        path = path[1:]
    return RemotePath(Address(groups["host"].strip("[]"), groups["user"] or "", port), _from_home(text, path))


def _from_home(text: str, path: str) -> str:
    if not path.startswith("~"):
        return path
    if path not in ("~", "~/") and not path.startswith("~/"):
        raise ValueError(f"{text}: another user's ~ is not looked up; write the whole path")
    return path[2:].lstrip("/") or "."
