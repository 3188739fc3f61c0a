"""Options about keys, and asking for passwords."""

from __future__ import annotations

import sys

import click

from tffc.assurance.trust.keys import PASSWORD, password_from_environment

key_option = click.option(
    "--key",
    required=True,
    metavar="FILE|hsm:ID|sigstore",
    help="The private key to sign with: a file in PEM or OpenSSH's format, or the key with this "
    f"CKA_ID in a PKCS#11 token. {PASSWORD} has its password, or it is asked for. With sigstore, "
    "the identity of this job of CI signs, over the network.",
)


def ask_password(what: str) -> str | None:
    """Return the password in the environment, or ask for it on a terminal."""
    password = password_from_environment(what)
    if password is None and sys.stdin.isatty():
        return click.prompt(what, hide_input=True, err=True)
    return password
