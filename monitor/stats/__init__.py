"""Incremental statistics, one class a file: `update(x)` and `value`."""
