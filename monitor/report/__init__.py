"""One run as a report of one file: what it says, and how it looks."""
