"""Shapes of tensors, as far as they are known."""

from __future__ import annotations

import dataclasses

import numpy as np

from tffc.assurance.privacy.quantities.quantity import Quantity, Shape


def common_shape(*values: Quantity) -> Shape | None:
    """Return the shape of an operation on each element, if that is known."""
    shapes = [value.shape for value in values if value.shape is not None]
    if len(shapes) < len(values):
        return None
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def shape_text(shape: Shape | None) -> str:
    """Return a shape as text."""
    return "?" if shape is None else str(list(shape))


def without_places(value: Quantity) -> Quantity:
    """Return a tensor without what is known of its elements by their places."""
    return dataclasses.replace(
        value,
        comparison=None,
        negates=None,
        branches=None,
        addends=None,
        residue=None,
        quotient=None,
    )
