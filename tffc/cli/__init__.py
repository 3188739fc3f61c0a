"""The command line.  Only this package knows click and rich.

Data goes to stdout, talk to stderr.  Exit codes:

    0    done
    1    refused: the program, the bundle, the data or a golden is not as it has to be
    2    the command was not used rightly
    3    not decided: neither proved nor refuted, of `tffc prove` and what asks for a proof
    70   a defect in tffc
    130  interrupted
    141  nobody reads the output any more
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit."""
    from tffc.cli import interrupts

    interrupts.end_at_once()
    from tffc.cli.streams import READER_GONE, OutputError, ReaderGone, open_streams

    open_streams()
    from tffc.cli.application import application

    try:
        interrupts.watch_interrupts()
        try:
            application(prog_name="tffc")
        finally:
            interrupts.end_at_once()
            # Python would do it at the end of the process, where nothing can be said any more.
            sys.stdout.flush()
    except ReaderGone:
        sys.exit(READER_GONE)
    except OutputError as error:
        from tffc.cli.diagnostics import report

        report(error, debug=False)
        sys.exit(error.exit_code)
    except (SystemExit, KeyboardInterrupt):
        if interrupts.was_interrupted():  # which some library may have taken for something else
            interrupts.leave()
        raise
