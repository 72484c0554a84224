"""What the user wants passed on to ssh, and how much of a link trainmon may take."""

from __future__ import annotations

from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SshOptions:
    """`config_file`, `jump`, `identities`, `options`: ssh's own ``-F``, ``-J``, ``-i``, ``-o``, passed on as they are.

    `rate`: bytes a second that reading a file's history may take of the link, for all files of a host together;
    None for as fast as it goes. `history_bytes`: of a longer log only its head and this much of its end are read;
    None for all of it. `program`: the client to run.
    """

    config_file: str = ""
    jump: str = ""
    identities: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    rate: int | None = None
    history_bytes: int | None = None
    program: str = "ssh"

    def arguments(self) -> list[str]:
        """The words for ssh's command line."""
        words: list[str] = []
        if self.config_file:
            words += ["-F", self.config_file]
        if self.jump:
            words += ["-J", self.jump]
        for identity in self.identities:
            words += ["-i", identity]
        for option in self.options:
            words += ["-o", option]
        return words
