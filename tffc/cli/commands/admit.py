"""`tffc admit`: decide whether a bundle may run here."""

from __future__ import annotations

import dataclasses
import pathlib

import click

from tffc.cli.options import json_option, path_option
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step


@click.command("admit")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=pathlib.Path))
@path_option("--demands", metavar="FILE.yaml", help="The file with what this node demands.")
@path_option("--keys", metavar="FILE|DIR", help="Public keys of who may sign.")
@path_option("--policy", metavar="FILE.yaml", help="What may leave the clients.")
@path_option("--approvals", metavar="DIR", help="The folder of approvals; with --approvers.")
@path_option("--approvers", metavar="FILE|DIR", help="Public keys of who may approve.")
@json_option
def admit_command(
    bundle: pathlib.Path, demands: pathlib.Path | None, as_json: bool, **paths: pathlib.Path | None
) -> None:
    """Decide whether a bundle may run here, with the reason of each verdict.

    Believes nothing that the bundle says of itself: verifies signatures by keys that the node
    trusts, proves that the components compute the program, audits what leaves the clients, and
    measures the program. Runs nothing of it, and does not load TensorFlow.

    The demands are options, or a YAML file, with paths relative to it:

    \b
      keys: keys                # public keys of who may sign: a folder or a file
      signatures: 2             # by so many different keys
      policy: policy.yaml       # what may leave the clients; see tffc audit
      proof: true               # the components compute the program; by default
      approvals: approvals      # the folder that tffc approve writes to
      approvers: reviewers      # public keys of who may approve
      bytes: 100000000          # of all messages and resources
      operations: 20000         # in the graphs of the clients' part
      memory: 2000000000        # that these graphs are known to need
      log: admissions.jsonl     # gets a line for each decision

    Exits with 1 if the bundle is refused.

    \b
    Examples:
      tffc admit build/training --keys alice.pub --policy policy.yaml
      tffc admit build/training --demands node.yaml
      tffc admit build/training --demands node.yaml --json
    """
    # Imported late: help needs none of it.
    from tffc.api.trust import admission_of_folder
    from tffc.assurance.trust.settings import AdmissionSettings, read_settings

    step(f"admitting {bundle}")
    settings = AdmissionSettings() if demands is None else read_settings(demands)
    named = {name: path for name, path in paths.items() if path is not None}
    if (paths["approvals"] is None) != (paths["approvers"] is None):
        raise click.UsageError("'--approvals' and '--approvers' need each other")
    admission = admission_of_folder(bundle, dataclasses.replace(settings, **named))
    if as_json:
        show_json(admission.data())
    else:
        show_line(admission.line())
    admission.check()
