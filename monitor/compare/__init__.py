"""Runs at the same x: aligned, judged against the noise, printed."""
