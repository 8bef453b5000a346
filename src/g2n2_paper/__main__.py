"""`python -m g2n2_paper`."""

from .cli import main

main()
