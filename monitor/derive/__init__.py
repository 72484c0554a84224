"""Rules D1-D17 of METRICS.md, one family a file; `derivation` puts them in order."""
