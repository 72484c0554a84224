"""Log formats, one small module a family, and the registry that picks one by content."""

from trainmon.tails.formats.registry import FORMATS, detect, format_class

__all__ = ["FORMATS", "detect", "format_class"]
