"""The values that were read, for other programs."""
