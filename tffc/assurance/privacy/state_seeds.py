"""Seeds that the server's state keeps from round to round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tffc.assurance.privacy.quantities import noises
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.quantity import Provenance, Quantity
from tffc.assurance.privacy.quantities.seeds import LARGEST, Seed, repeats
from tffc.language.dtypes import DType
from tffc.language.types import TensorType, Type

SHAPE = (2,)
"""The shape of the seeds that operations draw from."""


def first_seeds(
    first: Mapping[str, Quantity], types: Sequence[Type], algebra: Algebra
) -> tuple[frozenset[str], dict[str, str]]:
    """Return the elements of the first state that are seeds, and those that may tell about them
    with the seed that it is.

    A seed shares what it was drawn or read from with no other seed.
    """
    draws = {
        path: v.provenance.draws | algebra.single_draws(v.provenance.draws)
        for path, v in first.items()
    }
    seeds = [
        path
        for (path, value), type in zip(first.items(), types, strict=True)
        if _is_secret(value) and isinstance(type, TensorType)
        if type.element_type is DType.INT64 and value.shape == SHAPE
    ]
    owners: dict[int, str] = {}
    telling: dict[str, str] = {}
    for path in seeds:
        for draw in draws[path]:
            owners.setdefault(draw, path)
    for path in first:
        shared = sorted({owners[draw] for draw in draws[path] if draw in owners} - {path})
        if shared:
            telling[path] = shared[0]
    return frozenset(path for path in seeds if path not in telling), telling


def _is_secret(value: Quantity) -> bool:
    is_drawn = value.noise is not None and value.noise.distribution == noises.SEED
    is_read = value.seed is not None and value.seed.is_word
    origin = value.provenance
    return (is_drawn or is_read) and not (origin.is_of_client or origin.exposures)


def seed_of_state(algebra: Algebra, path: str) -> Quantity:
    """Return a seed that the state has, as it is before a round."""
    source = algebra.source(path)
    text = (
        f"{path} begins as a seed that cannot be guessed, and is never the same as another seed, "
        "whatever is added to either"
    )
    provenance = Provenance(draws=frozenset((source,)))
    term = algebra.term("state", path)
    seed = Seed(source, text, offsets=(0,) * SHAPE[0])
    return Quantity(term, provenance, shape=SHAPE, seed=seed, is_integer=True)


def goes_on(value: Quantity, path: str, algebra: Algebra) -> bool:
    """Tell whether the new state has a seed that no other round draws from."""
    seed = value.seed
    if seed is None or path not in algebra.sources or seed.source != algebra.sources[path]:
        return False
    offsets = [offsets for _, *offsets in algebra.keys_of(path)]
    return max(map(abs, seed.offsets)) < LARGEST and not repeats(
        seed.offsets, [tuple(each) for each in offsets]
    )
