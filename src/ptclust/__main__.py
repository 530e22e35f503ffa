"""``python -m ptclust`` is ``ptclust``."""

from ptclust.cli import main

if __name__ == "__main__":
    main()
