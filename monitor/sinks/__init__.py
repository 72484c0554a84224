"""Where alerts go: what is worth telling (`bus`), to whom (one small module a sink, listed in `registry`)."""
