"""Thresholds from healthy runs."""
