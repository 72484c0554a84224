"""``trainmon preflight``: what a configuration says of a run that has not begun, checked against published recipes."""
