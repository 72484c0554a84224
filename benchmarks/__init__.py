"""Speed, memory and accuracy, each printed against a named peer or truth."""
