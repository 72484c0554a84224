"""Numbers to judgement: series, derived signals, detectors, episodes, checks. Knows nothing of the screens."""
