"""Which step a record belongs to: attempts, other writers, and what a row means."""
