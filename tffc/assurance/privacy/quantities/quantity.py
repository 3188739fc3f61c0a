"""What is known of a tensor: where it comes from, bounds of its elements, and how it was made.

A client's values are followed up to what it contributes to a sum; the sum is followed at the server
up to the noise that is added to it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tffc.assurance.privacy.quantities.bounds import ANY, Bounds, Monomial
from tffc.assurance.privacy.quantities.seeds import Seed
from tffc.assurance.privacy.quantities.streams import Shape, Stream


@dataclasses.dataclass(frozen=True, slots=True)
class Exposure:
    """Why a value at the server tells more of a single client than any noise hides: its channel,
    or the state that it is from, and the reason."""

    source: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Provenance:
    """What a value was made of.

    `is_of_client` tells that a client's own data is among it.  `exposures` are sums of clients'
    values to which no noise was added.  `draws` are the random numbers that are in it, by number,
    `mechanisms` the noisy sums of this round, and `seeded` the draws that are the same in each
    round.  `is_of_earlier` tells that noisy sums of earlier rounds are in it.
    """

    is_of_client: bool = False
    exposures: frozenset[Exposure] = frozenset()
    draws: frozenset[int] = frozenset()
    mechanisms: frozenset[int] = frozenset()
    seeded: frozenset[str] = frozenset()
    is_of_earlier: bool = False

    @property
    def is_public(self) -> bool:
        """Whether whoever sees the releases may know the value."""
        return not (self.is_of_client or self.exposures or self.draws)


NOTHING = Provenance()


def union(*parts: Provenance) -> Provenance:
    """Return the provenance of a value made of several."""
    present = [part for part in parts if part is not NOTHING]
    if len(present) < 2:
        return present[0] if present else NOTHING
    return Provenance(
        any(part.is_of_client for part in present),
        frozenset().union(*(part.exposures for part in present)),
        frozenset().union(*(part.draws for part in present)),
        frozenset().union(*(part.mechanisms for part in present)),
        frozenset().union(*(part.seeded for part in present)),
        any(part.is_of_earlier for part in present),
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Noise:
    """Random numbers, drawn for each element by itself.

    The `distribution` is one that `noises` names, in its standard form; the value is `scale` times
    it, of which the magnitude matters.  `draws` are its draws, and `place` says where they are.
    """

    distribution: str
    scale: Bounds
    draws: frozenset[int]
    place: str
    stream: Stream | None = dataclasses.field(default=None, compare=False)
    """The noise of all rounds, if that is followed by value; `scale` says nothing then."""
    is_magnitude: bool = False
    """Whether it is a function of the magnitude of a draw, of which the sign is independent."""
    is_shifted: bool = False
    """Whether the value is `scale` times the draw plus something public."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """What each client adds to a leaf of a channel: its value without noise, and the clients' noise
    in it, if they add any; `draws` are all random numbers that are in it.

    If sums of several channels are one, as that of values and a count, the others are `beside`.
    """

    channel: str
    leaf: str
    value: Quantity
    noise: Noise | None = None
    draws: frozenset[int] = frozenset()
    beside: frozenset[str] = frozenset()

    @property
    def channels(self) -> frozenset[str]:
        """The channels of the sums that it is in."""
        return self.beside | {self.channel}


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Line:
    """An affine function of a tensor that is not exact: each element is one of `base` times
    `slope`, plus a number from `least` to `most`, and then brought into the interval from `low` to
    `high`."""

    base: Quantity
    slope: float = 1.0
    least: float = 0.0
    most: float = 0.0
    low: float = -math.inf
    high: float = math.inf


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quotient:
    """The largest integer that is not above `whole` plus `shift`, divided by `divisor`; and that
    integer `times` a number."""

    whole: Quantity
    divisor: int
    shift: int
    times: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A tensor.

    Tensors of the same `term` are equal.  Each of its elements is within `bounds`.  Up to their
    order, its elements are those of the tensor of the term `elements`, if that is not zero, or else
    its own, times the number `factor`, if there is one.

    - `product`: it is the first of these times the second, which is a number.
    - `parts`: it has the elements of these, each once.
    - `within`: its elements are, in magnitude, at most different elements of each of these.
    - `line`: its elements are, up to their order, on this line.
    - `image`: its L2 norm is at most this number times that of a tensor; so is that of the
      difference of two.
    - `length`: the sum of the magnitudes of its elements is at most this.
    - `section`: it is the elements from `start` to `stop` of a vector.
    - `power_of`: it has a power of the magnitude of each element of a tensor.
    - `comparison`: whether one number is greater than another, as `(greater, less)`.
    - `branches`: its bounds where the value of a term is true, and where it is false.
    - `sums`: it is a public tensor plus these sums over clients, each times a number.
    - `half`: beside its sums, it has this noise, which hides nothing without other noise.
    - `noise`: it is nothing but noise.
    - `signal`: it is a client's value and noise.
    - `stream`: beside its sums, it has this noise; it is a multiple of that of the term `core`.
    - `seed`: its elements are a seed that nobody can guess.
    - `residue`: it is equal to an integer tensor modulo a number.
    - `quotient`: it is this multiple of a quotient.
    - `span`: it was of an integer type whose numbers have at most this magnitude.
    - `addends`: it is the sum of these.
    - `content`: its value, if that is a constant; a tuple of sizes for the shape of a tensor.
    """

    term: int
    provenance: Provenance = NOTHING
    bounds: Bounds = ANY
    shape: Shape | None = None
    elements: int = 0
    factor: Quantity | None = None
    product: tuple[Quantity, Quantity] | None = None
    parts: tuple[Quantity, ...] = ()
    within: tuple[Quantity, ...] = ()
    line: Line | None = None
    image: tuple[Quantity, float] | None = None
    length: Monomial | None = None
    section: tuple[Quantity, int, int] | None = None
    power_of: tuple[Quantity, int] | None = None
    comparison: tuple[Quantity, Quantity] | None = None
    negates: Quantity | None = None
    branches: tuple[int, Bounds, Bounds] | None = None
    sums: tuple[tuple[Contribution, Bounds], ...] = ()
    half: Noise | None = None
    noise: Noise | None = None
    signal: tuple[Quantity, Noise] | None = None
    stream: Stream | None = None
    core: int = 0
    seed: Seed | None = None
    residue: tuple[Quantity, Monomial] | None = None
    quotient: Quotient | None = None
    span: float = math.inf
    addends: tuple[Quantity, Quantity] | None = None
    content: Any = None
    is_integer: bool = False
    """Whether its elements are integers or truth values, and of such a type."""
    is_whole: bool = False
    """Whether its elements are integers, whatever its type."""
    is_finiteness: bool = False
    """Whether it tells if numbers are finite."""

    @property
    def base(self) -> int:
        """The term of the tensor whose elements these are, but for the factor and their order."""
        return self.elements or self.term

    @property
    def is_scalar(self) -> bool:
        """Whether it is known to have one element and no dimensions."""
        return self.shape == ()

    @property
    def size(self) -> int | None:
        """The number of its elements, if that is known."""
        if self.shape is None:
            return None
        size = 1
        for length in self.shape:
            size *= length
        return size


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Mechanism:
    """Noise that is added to sums over clients: each sum with the bounds of its factor.

    `shape` is that of the sum, and `place` says which operation adds it.
    """

    sums: tuple[tuple[Contribution, Bounds], ...]
    noise: Noise
    shape: Shape
    place: str
