"""The texts of float and complex constants and of arrays, as NumPy 1.25 prints them.

Later releases of NumPy use scientific notation for other numbers.  Printed programs must not depend
on the installed release, so the notation is chosen here; NumPy only computes the digits of numbers
and lays out the rows of arrays.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

PRECISION = 8
"""The most digits after the point in elements of arrays."""

EDGE, THRESHOLD = 3, 1000
"""An array with more elements than `THRESHOLD` is shown with `EDGE` of them at each edge."""

LAYOUT: dict[str, Any] = {
    "precision": PRECISION,
    "threshold": THRESHOLD,
    "edgeitems": EDGE,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "floatmode": "maxprec",
    "legacy": False,
}
"""NumPy's default print options."""


def scalar_text(value: Any) -> str:
    """Return a NumPy float or complex scalar as `str` prints it."""

    if value.dtype.name == "bfloat16":
        return bfloat16_text(value)
    if not np.iscomplexobj(value):
        return _float_text(value, trim="0")
    imaginary = _float_text(value.imag)
    if value.real == 0 and not np.signbit(value.real):
        return f"{imaginary}j"
    return f"({_float_text(value.real)}{_float_text(value.imag, sign=True)}j)"


def finite_texts(values: Any) -> list[str | None]:
    """Return the texts of many NumPy floats as `scalar_text` gives them, or None for those that
    need it.

    NumPy computes the fewest digits that tell a number from its neighbours, and Python writes them,
    in a notation that does not depend on NumPy's version.
    """

    written = list(map(float, values.astype("U32").tolist()))
    exact = np.array(written, dtype=np.float64)
    with np.errstate(all="ignore"):
        is_read = exact.astype(values.dtype) == values
        sizes, shown = np.abs(values.astype(np.float64)), np.abs(exact)
    # `scalar_text` chooses the notation by the number, Python by the digits: both must agree.
    is_chosen = ((sizes < 1e-4) == (shown < 1e-4)) & ((sizes < 1e16) == (shown < 1e16))
    usable = (np.isfinite(values) & is_read & is_chosen).tolist()
    return [repr(number) if use else None for number, use in zip(written, usable, strict=True)]


def complex_text(real: str, imaginary: str) -> str:
    """Return the text of a complex number, given the texts of its finite parts as floats."""
    imaginary = imaginary.removesuffix(".0")
    if real == "0.0":
        return f"{imaginary}j"
    sign = "" if imaginary.startswith("-") else "+"
    return f"({real.removesuffix('.0')}{sign}{imaginary}j)"


def bfloat16_text(value: Any) -> str:
    """Return the text of a bfloat16 number, which has at most six digits."""
    return f"{float(value):g}"


def _float_text(value: Any, *, trim: Literal["-", "0"] = "-", sign: bool = False) -> str:

    if not np.isfinite(value):
        return _special_text(value, sign)
    if value == 0 or 1e-4 <= abs(float(value)) < 1e16:
        return np.format_float_positional(value, trim=trim, sign=sign)
    return np.format_float_scientific(value, trim="-", sign=sign, exp_digits=2)


def _special_text(value: Any, sign: bool) -> str:
    """Return the text of NaN or an infinity; with `sign`, with a plus if it is not negative."""
    # `isnan` comes first, because NumPy 1.26 warns if a signalling NaN is compared.
    if np.isnan(value):
        return ("+" if sign else "") + "nan"
    return "-inf" if np.signbit(value) else ("+" if sign else "") + "inf"


def array_text(value: Any) -> str:
    """Return a NumPy array as `str` prints it."""

    formatter: dict[str, Any] = {}
    if value.dtype.name == "bfloat16":
        formatter["all"] = bfloat16_text
    elif value.dtype.kind == "f":
        formatter["float_kind"] = _ElementFormat(_shown(value))
    elif value.dtype.kind == "c":
        shown = _shown(value)
        real, imaginary = _ElementFormat(shown.real), _ElementFormat(shown.imag, sign=True)

        def complex_element(x: Any) -> str:
            return real(x.real) + _with_j(imaginary(x.imag))

        formatter["complex_kind"] = complex_element
    options: dict[str, Any] = {**LAYOUT, "formatter": formatter or None}
    with np.printoptions(**options):
        return str(value)


def _with_j(text: str) -> str:
    bare = text.rstrip()
    return bare + "j" + text[len(bare) :]


def _shown(value: Any) -> Any:
    """Return the elements that are printed: those at the edges of a large array, or all."""

    if value.size <= THRESHOLD:
        return value
    for axis, size in enumerate(value.shape):
        if size > 2 * EDGE:
            edges = [*range(EDGE), *range(size - EDGE, size)]
            value = np.take(value, edges, axis=axis)
    return value


class _ElementFormat:
    """The format of the float elements of one array, which all have the same width.

    NumPy pads each number so that the points are aligned: `_left` and `_right` are the most
    characters before and after the point.  An exponent counts as part of the right side.
    """

    def __init__(self, elements: Any, *, sign: bool = False) -> None:
        finite = elements[np.isfinite(elements)]
        self._sign = sign
        self._scientific = _needs_exponent(finite)
        self._left = self._right = 0
        self._digits = self._exponent = 0
        if self._scientific:
            self._measure_scientific(finite)
        elif finite.size:
            texts = [self._positional(x).partition(".") for x in finite]
            self._left = max(len(whole) for whole, _, _ in texts)
            self._right = max(len(fraction) for _, _, fraction in texts)
        if finite.size != elements.size:
            # NaN and infinities have no point, and are aligned to the right of the whole width.
            minus = sign or bool((elements[np.isinf(elements)] < 0).any())
            room = self._right + 1
            self._left = max(self._left, len("nan") - room, len("inf") + minus - room)

    def _measure_scientific(self, finite: Any) -> None:

        texts = [
            np.format_float_scientific(x, precision=PRECISION, trim=".", sign=self._sign)
            for x in finite
        ]
        split = [text.partition("e") for text in texts]
        self._exponent = max(len(exponent) for _, _, exponent in split) - 1
        mantissas = [mantissa.partition(".") for mantissa, _, _ in split]
        self._digits = max(len(fraction) for _, _, fraction in mantissas)
        self._left = max(len(whole) for whole, _, _ in mantissas)
        self._right = self._exponent + 2 + self._digits  # fraction, `e`, sign, exponent

    def _positional(self, value: Any, **padding: Any) -> str:

        return np.format_float_positional(
            value, precision=PRECISION, trim=".", sign=self._sign, **padding
        )

    def __call__(self, value: Any) -> str:

        if not np.isfinite(value):
            text = _special_text(value, self._sign)
            return text.rjust(self._left + self._right + 1)
        if self._scientific:
            return np.format_float_scientific(
                value,
                precision=self._digits,
                min_digits=self._digits,
                trim="k",
                sign=self._sign,
                pad_left=self._left,
                exp_digits=self._exponent,
            )
        return self._positional(value, pad_left=self._left, pad_right=self._right, min_digits=0)


def _needs_exponent(finite: Any) -> bool:

    sizes = np.abs(finite[finite != 0])
    if not sizes.size:
        return False
    largest, smallest = sizes.max(), sizes.min()
    # NumPy 1.25's rule for arrays, which differs from that for scalars.
    with np.errstate(over="ignore"):  # the quotient may be infinite, which is more than 1000
        return bool(largest >= 1e8 or smallest < 0.0001 or largest / smallest > 1000)
