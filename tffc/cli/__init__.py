"""The command line.  Only this package knows click and rich.

Data goes to stdout, talk to stderr.  Exit codes:

    0    done
    1    refused: the program, the bundle, the data or a golden is not as it has to be
    2    the command was not used rightly
    70   a defect in tffc
    130  interrupted
"""

from __future__ import annotations


def main() -> None:
    """Runs the command line and exits."""
    from tffc.cli.application import application

    application(prog_name="tffc")
