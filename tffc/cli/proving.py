"""What commands believe of a bundle: its program only where its components compute it."""

from __future__ import annotations

from tffc.assurance.audit import bundles
from tffc.assurance.audit.bundles import Reading, read_for_audit
from tffc.backends.bundle.bundle import Bundle
from tffc.cli.output import say
from tffc.cli.progress import step
from tffc.language.nodes import Node
from tffc.support.printable import printable


def read_proved(source: str, bundle: Bundle) -> Reading:
    """Return what is read of a bundle: the program in it if its components are proved to compute
    it, else what the components compute, with a warning.

    Raises:
      FormError: the components are not those of the form.
    """
    step(f"proving {source}")
    reading = read_for_audit(bundle)
    if reading.error is not None:
        reason = printable(reading.error.message)
        say(f"warning: {printable(source)} is read from its components: {reason}")
    return reading


def round_of_bundle(source: str, bundle: Bundle) -> Node:
    """Return the program that stands for a bundle; see `read_proved`."""
    return read_proved(source, bundle).program


def refuse_forged(source: str, bundle: Bundle) -> None:
    """Check that the components of a bundle do not compute something else than its program; warn
    if that is not decided.

    Raises:
      ValidationError: they do.
      FormError: they are not those of the form.
    """
    step(f"proving {source}")
    reading = bundles.refuse_forged(bundle)
    if reading.error is not None:
        say(f"warning: {printable(source)}: {printable(reading.error.message)}")
