"""The demands of a machine on bundles, in a file that a variable of its environment names."""

from __future__ import annotations

import os
import pathlib

from tffc.backends.bundle.bundle import Bundle

VARIABLE = "TFFC_DEMANDS"


def demands_of_machine() -> pathlib.Path | None:
    """Return the file with the demands for every process of this machine, if there is one."""
    name = os.environ.get(VARIABLE)
    return pathlib.Path(name) if name else None


def check_admitted(bundle: Bundle, source: str, *, are_masked: bool = True) -> None:
    """Check that the demands of this machine, if it has any, admit a bundle; `source` names it.

    Unless `are_masked`, secure sums count as aggregated by the system.

    Raises:
      TrustError: they do not.
      TffcError: they cannot be read.
    """
    demands = demands_of_machine()
    if demands is not None:
        # Imported late: most machines have no demands, and this imports the prover and the audit.
        from tffc.assurance.trust.admission import admission_of
        from tffc.assurance.trust.settings import read_settings

        settings = read_settings(demands)
        admission_of(bundle, settings, source, are_masked=are_masked).check()
