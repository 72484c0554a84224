"""Logs on other hosts, through OpenSSH's own client: one connection a host, nothing installed or written there."""
