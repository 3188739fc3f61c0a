"""`tffc sign`: sign a bundle."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.keys import ask_password, key_option
from tffc.cli.options import path_option
from tffc.cli.output import say
from tffc.cli.progress import step


@click.command("sign")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=pathlib.Path))
@key_option
@click.option("--name", metavar="NAME", help="The signature's name.  [default: the key's]")
@path_option(
    "--policy", metavar="FILE.yaml", help="Sign only if the round passes this policy, and say so."
)
def sign_command(
    bundle: pathlib.Path, key: str, name: str | None, policy: pathlib.Path | None
) -> None:
    """Sign a bundle: its files, its form and versions, and what its proof and audit say.

    The bundle is proved and audited first. The signature is a file in the folder of the bundle,
    signatures/NAME.sigstore.json: a statement of in-toto in a DSSE envelope. A bundle can have
    several. Needs the package securesystemslib; does not load TensorFlow.

    \b
    Examples:
      ssh-keygen -q -t ed25519 -N '' -C '' -f release
      tffc sign build/training --key release
      tffc sign build/training --key release --policy policy.yaml
    """
    # Imported late: help needs none of it.
    from tffc.assurance.trust.signing import sign

    step(f"signing {bundle}")
    path = sign(bundle, key, name=name, policy=policy, password=ask_password)
    say(f"wrote {path}")
