"""One file a command: what it takes, what it prints, how it ends. The table of them is in trainmon.cli."""
