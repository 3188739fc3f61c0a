"""Renames binders so that each has a name of its own."""

from __future__ import annotations

from tffc.language.alpha import Names, rename_binders
from tffc.language.nodes import Node
from tffc.language.scope import free_names


def unique_names(root: Node, *, stem: str = "") -> Node:
    """Give every binder a unique name that is not free.

    The first binder of a name, in evaluation order, keeps it, and later ones are numbered.  With
    `stem`, all binders are named after it instead.  Free names do not change.

        (x -> (let x=<x> in x))   becomes   (x -> (let x_1=<x> in x_1))
    """
    names = Names(set(free_names(root)))
    return rename_binders(root, lambda name: names.fresh(stem or name))
