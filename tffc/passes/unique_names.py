"""Renames binders so that each has a name of its own."""

from __future__ import annotations

from tffc.ir.alpha import Names, rename_binders
from tffc.ir.nodes import Node
from tffc.ir.scope import free_names


def unique_names(root: Node, *, stem: str = "") -> Node:
    """Give every binder a name that no other binder has and that is not free.

    The first binder of a name keeps it, in the order in which binders are evaluated; those after
    it are numbered.  Where `stem` is given, all binders are named after it instead.  Names that are
    free stay as they are.

        (x -> (let x=<x> in x))   becomes   (x -> (let x_1=<x> in x_1))
    """
    names = Names(set(free_names(root)))
    return rename_binders(root, lambda name: names.fresh(stem or name))
