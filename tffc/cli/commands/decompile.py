"""`tffc decompile`: turn a bundle back into a computation."""

from __future__ import annotations

import pathlib

import click

from tffc.backends.bundle.bundle import read_bundle
from tffc.cli.options import PATH, path_option, size_option
from tffc.cli.output import say, write_output
from tffc.cli.proving import read_proved
from tffc.language import wire


@click.command("decompile")
@click.argument("bundle", metavar="BUNDLE", type=PATH)
@path_option(
    "-o", "--out", required=True, metavar="FILE.pb", help="Where to write the computation."
)
@size_option
def decompile_command(bundle: pathlib.Path, out: pathlib.Path) -> None:
    """Write the components of a bundle as one computation, which TFF and tffc can read.

    It computes what the components compute, and compiles to components of the same types. A
    warning says if that is not proved to be what the traced computation computes.

    \b
    Examples:
      tffc decompile build/training -o training.pb
      # Compare the program with the decompiled one.
      tffc decompile build/mean -o mean.pb && tffc diff round.pb mean.pb
    """
    read = read_bundle(bundle)
    read_proved(str(bundle), read)
    computation = read.read_form().decompile()
    write_output(out, wire.to_bytes(computation))
    say(f"wrote {out}: {computation.type}")
