"""Detectors: one class a fault family, one file each; `registry.DETECTORS` lists them."""
