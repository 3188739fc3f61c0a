"""`tffc audit`: what leaves the clients of a round, and whether a policy allows it."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import form_option, path_option, size_option

FORMATS = ("text", "json", "sarif", "html")


@click.command("audit")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE")
@form_option("The form to compile the program to; a bundle has its own form.")
@path_option("--policy", metavar="FILE.yaml", help="Fail if the round violates this policy.")
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="The format of the audit; sarif contains only violations.",
)
@click.option("-o", "--out", metavar="FILE", help="Write the audit to this file.")
@click.option(
    "--as-of",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Evaluate exceptions as of this day.  [default: today]",
)
@size_option
def audit_command(**options: Any) -> None:
    """Show what leaves the clients of a round, how it is protected, and where it goes.

    Every aggregation is a channel: its name and line in your program, its bytes, the elements of a
    client's data that it may depend on, and the state and output that it reaches. The audit holds
    for every argument: it may list more than a value depends on, never less. Draws of random
    numbers are not a claim of differential privacy.

    A policy is a YAML file:

    \b
      operators: [federated_secure_sum, federated_mean]
      never-leave: ['data.user.*']
      largest-bytes: 4000000
      protection: system          # secure, system, program or none
      noise: true
      effects: {clients: [], server: [files]}
      exceptions:
        - channel: loss
          rule: protection
          reason: reviewed, a mean over a thousand clients
          expires: 2030-01-31

    Exits with 1 if the round violates the policy.

    \b
    Examples:
      tffc audit examples/temperature/temperature.py:mean_temperature \\
          --form mapreduce
      tffc audit build/training --format html -o audit.html
    """
    from tffc.cli import audit

    audit.audit_program(**options)
