"""How users install what tffc needs only for some things."""

from __future__ import annotations


def installation(extra: str = "") -> str:
    """Return how to install an extra of tffc, or tffc itself, in the words of a help.

    It names a checkout, because nobody has registered tffc's name on the package index: whoever
    does could run code wherever that name is installed.
    """
    what = f"'.[{extra}]'" if extra else "."
    return f"in tffc's checkout: pip install {what}"
