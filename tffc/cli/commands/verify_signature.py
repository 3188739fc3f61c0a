"""`tffc verify-signature`: show who has signed a bundle."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.options import json_option
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step


@click.command("verify-signature")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=pathlib.Path))
@click.option(
    "--keys",
    required=True,
    multiple=True,
    metavar="FILE|DIR",
    type=click.Path(path_type=pathlib.Path),
    help="A public key that you trust, or a folder of .pub and .pem files; repeatable.",
)
@click.option(
    "--signatures",
    "least",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many different trusted keys must have signed.",
)
@json_option
def verify_signature_command(
    bundle: pathlib.Path, keys: tuple[pathlib.Path, ...], least: int, as_json: bool
) -> None:
    """Check who has signed a bundle, and that what they have signed is true of it.

    A signature counts if a trusted key made it, if every file of the bundle is the one that was
    signed, and if the proof and the audit, made again here, come out as it says.

    Exits with 1 if fewer trusted keys have signed.

    \b
    Examples:
      tffc verify-signature build/training --keys alice.pub
      tffc verify-signature build/training --keys trusted --signatures 2
    """
    # Imported late: help needs none of it.
    from tffc.assurance.trust.signing import verify_signature

    step(f"verifying {bundle}")
    signers = verify_signature(bundle, keys)
    if as_json:
        show_json({"signed": list(signers.names), "refused": list(signers.refusals)})
    elif len(signers.names) >= least:
        show_line(f"{bundle}: signed by {', '.join(signers.names)}")
    signers.check(least)
