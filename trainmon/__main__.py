"""``python -m trainmon``."""

from trainmon.cli import main

if __name__ == "__main__":
    main()
