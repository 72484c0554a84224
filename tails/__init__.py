"""Where logs live, how they grow, and what a line says. Knows nothing of the monitor."""
