"""`python -m tffc` is `tffc`."""

from tffc.cli import main

main()
