"""The Textual screens. They draw snapshots and never touch a file, a host or a lock."""
