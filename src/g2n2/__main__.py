"""`python -m g2n2`: the same commands as the `g2n2` script."""

from .cli import main

if __name__ == "__main__":
    main()
