"""`tffc approve`: approve the clients' part of a bundle, or revoke that."""

from __future__ import annotations

import datetime
import pathlib

import click

from tffc.cli.keys import ask_password, key_option
from tffc.cli.options import path_option, refuse_without_effect
from tffc.cli.output import say


@click.command("approve")
@click.argument("bundle", metavar="BUNDLE|DIGEST")
@key_option
@path_option("--store", metavar="DIR", help="The folder of approvals.", required=True)
@click.option("--reason", metavar="TEXT", default="", help="What the reviewer has to say.")
@click.option(
    "--expires",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The last day on which the approval holds.",
)
@click.option("--name", metavar="NAME", help="The name of its file.  [default: the key's]")
@click.option("--revoke", is_flag=True, help="End all approvals of this clients' part.")
def approve_command(
    bundle: str,
    key: str,
    store: pathlib.Path,
    reason: str,
    expires: datetime.datetime | None,
    name: str | None,
    revoke: bool,
) -> None:
    """Approve the clients' part of a bundle: what runs at the clients and adds up their values.

    The approval is a signed file in a folder, which can be in git. It is about the digest of the
    clients' part, so it stays valid when only the server's part changes. Review the bundle first,
    with tffc audit; its page ends with this command.

    \b
    Examples:
      tffc approve build/training --key bob --store approvals \\
          --reason 'one model of the mean' --expires 2027-06-30
      tffc approve build/training --key bob --store approvals --revoke \\
          --reason 'the site left'
    """
    # Imported late: help needs none of it.
    from tffc.assurance.trust.signing import approve

    if revoke:
        refuse_without_effect("with --revoke, approvals end now", "expires")
    path = approve(
        bundle,
        key,
        store,
        reason=reason,
        expires=None if expires is None else expires.date(),
        revoke=revoke,
        name=name,
        password=ask_password,
    )
    say(f"wrote {path}")
