"""The command line.  Only this package knows click and rich.

Data goes to stdout, messages to stderr.  Exit codes:

    0    done
    1    refused: the program, the bundle, the data or a golden file has an error
    2    wrong usage of the command
    3    undecided: neither proved nor refuted, by `tffc prove` and commands that require a proof;
         nothing could be compared, by `tffc verify`
    70   a defect in tffc
    130  interrupted by Ctrl-C
    141  broken pipe: the reader of the output has gone
    143  interrupted by SIGTERM; 129 by SIGHUP
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit."""
    try:
        from tffc.cli import interrupts

        interrupts.end_at_once()
    except KeyboardInterrupt:
        # Only until here does Python itself answer Ctrl-C.
        sys.stderr.write("\ninterrupted\n")
        sys.exit(130)
    from tffc.cli.collector import collector_paused, skip_last_collection

    with collector_paused():
        from tffc.cli.streams import READER_GONE, OutputError, ReaderGone, open_streams

        open_streams()
        from tffc.cli.application import application

    try:
        interrupts.watch_interrupts()
        try:
            application(prog_name="tffc")
        finally:
            interrupts.end_at_once()
            # Python would flush at the end of the process, when an error can no longer be reported.
            sys.stdout.flush()
            skip_last_collection()
    except ReaderGone:
        sys.exit(READER_GONE)
    except OutputError as error:
        from tffc.cli.diagnostics import report

        report(error, debug=False)
        sys.exit(error.exit_code)
    except (SystemExit, KeyboardInterrupt):
        # A library may have caught the interruption and reported another error.
        if interrupts.was_interrupted():
            interrupts.leave()
        raise
