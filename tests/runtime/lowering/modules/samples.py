"""Functions of JAX that have every operation of modules which is translated, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Sample(NamedTuple):
    """A function, and its arguments for one client."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


ODD = np.array([0, -0.0, 1, -1, 2.5, -2.5, 3.5, 0.5, -0.5, 1e9, -1e20, np.inf, -np.inf, np.nan])
BITS = np.array([0, 1, -1, 5, 127, -128, 64, -77])
FLOATS = (np.float32, np.float64, np.float16, jnp.bfloat16)
INTS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def odd(dtype: Any) -> np.ndarray:
    """Numbers of a type, those that are not finite among them."""
    with np.errstate(all="ignore"):
        return ODD.astype(dtype)


def ints(dtype: Any) -> np.ndarray:
    """Numbers of a type, its least and largest among them."""
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max], dtype)
    return np.concatenate([ends, BITS.astype(dtype)])


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 1) -> np.ndarray:
    """Random numbers, small if they are integers."""
    numbers = np.random.default_rng(seed).normal(size=shape) * 3
    if dtype in (np.complex64, np.complex128):
        numbers = numbers + 1j * np.random.default_rng(seed + 9).normal(size=shape)
    return numbers.astype(dtype)


UNARY = {
    name: getattr(lax, name)
    for name in (
        *("abs", "cbrt", "ceil", "cos", "exp", "expm1", "floor", "is_finite", "log", "log1p"),
        *("logistic", "neg", "rsqrt", "sign", "sin", "sqrt", "tan", "tanh"),
    )
}
BINARY = {
    name: getattr(lax, name)
    for name in (
        *("add", "atan2", "div", "max", "min", "mul", "pow", "rem", "sub"),
        *("eq", "ne", "lt", "le", "gt", "ge"),
    )
}
OF_INTS = {
    name: getattr(lax, name)
    for name in (
        *("add", "div", "max", "min", "mul", "rem", "sub", "eq", "lt", "ge"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
        *("shift_left", "shift_right_arithmetic", "shift_right_logical"),
    )
}
OF_ONE_INT = {
    name: getattr(lax, name)
    for name in ("abs", "bitwise_not", "clz", "neg", "population_count", "sign")
}


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of some values."""
    one, other = np.meshgrid(values, values)
    return one, other


def every(functions: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a function that returns what some functions do of its arguments."""
    return lambda *values: {name: function(*values) for name, function in functions.items()}


def elementwise() -> dict[str, Sample]:
    """Operations on each element, of every type that they take."""
    samples = {}
    for dtype in FLOATS:
        name = np.dtype(dtype).name
        samples[f"of one {name}"] = Sample(every(UNARY), (odd(dtype),))
        samples[f"of two {name}"] = Sample(every(BINARY), pairs(odd(dtype)))
        samples[f"rounding {name}"] = Sample(
            lambda x: [lax.round(x, method) for method in lax.RoundingMethod],
            (odd(dtype),),
        )
        samples[f"reduced precision {name}"] = Sample(
            lambda x: lax.reduce_precision(x, 5, 3), (odd(dtype),)
        )
    for dtype in INTS:
        name = np.dtype(dtype).name
        of_one = dict(OF_ONE_INT)
        if np.iinfo(dtype).min == 0:
            del of_one["abs"]
        samples[f"of one {name}"] = Sample(every(of_one), (ints(dtype),))
        samples[f"of two {name}"] = Sample(every(OF_INTS), pairs(ints(dtype)))
    for dtype in (np.complex64, np.complex128):
        name, numbers = np.dtype(dtype).name, drawn(4, dtype=dtype)
        functions = {n: UNARY[n] for n in ("abs", "exp", "log", "neg", "sign", "sqrt", "tanh")}
        samples[f"of one {name}"] = Sample(
            every({**functions, "real": lax.real, "imag": lax.imag, "conj": jnp.conj}), (numbers,)
        )
        functions = {n: BINARY[n] for n in ("add", "div", "mul", "sub", "pow", "eq", "ne")}
        samples[f"of two {name}"] = Sample(
            lambda a, b, functions=functions: [every(functions)(a, b), a * (1 + 2j)],
            pairs(numbers),
        )
    truths = np.array([True, False])
    samples["of truths"] = Sample(
        lambda a, b: [
            *(function(a, b) for function in (lax.max, lax.min, lax.eq, lax.ne, lax.lt)),
            *(function(a, b) for function in (jnp.logical_and, jnp.logical_or, jnp.logical_xor)),
            *(jnp.logical_not(a), a.any(), b.all()),
        ],
        pairs(truths),
    )
    samples["clamp"] = Sample(
        lambda x, low: [lax.clamp(low, x, np.float32(3)), lax.clamp(low + 0 * x, x, x + 1)],
        (odd(np.float32), np.float32(-1)),
    )
    samples["select"] = Sample(
        lambda x, one: [
            jnp.where(x > 1, x, -x),
            lax.select(one, x, -x),
            lax.select_n(x.astype(np.int32) % 3, x, x + 1, x + 2),
        ],
        (np.arange(5, dtype=np.float32), np.bool_(True)),
    )
    samples["complex"] = Sample(lambda x: lax.complex(x, x + 1), (np.arange(3, dtype=np.float32),))
    return samples


KINDS = (*FLOATS, *INTS, np.bool_, np.complex64)


def conversions() -> dict[str, Sample]:
    """Casts from and to every type; a NaN and what is out of range among the numbers."""

    def cast(x: Any) -> Any:
        kinds = KINDS if x.dtype.kind != "c" else (np.complex64, np.complex128)
        return [lax.convert_element_type(x, each) for each in kinds]

    samples = {}
    for dtype in KINDS:
        numbers = ints(dtype) if dtype in INTS else odd(dtype)
        samples[f"casts of {np.dtype(dtype).name}"] = Sample(cast, (numbers,))
    samples["bits"] = Sample(
        lambda x: [
            lax.bitcast_convert_type(x, each)
            for each in (np.int32, np.uint32, np.uint8, np.int16, jnp.bfloat16, np.float16)
        ],
        (odd(np.float32),),
    )
    samples["bits of several"] = Sample(
        lambda x: lax.bitcast_convert_type(x, np.float64),
        (np.arange(6, dtype=np.int32).reshape(3, 2),),
    )
    return samples


def shapes() -> dict[str, Sample]:
    """Operations that move elements."""
    x, ten = drawn(3, 4), np.arange(10, dtype=np.float32)
    none = np.zeros((0, 4), np.float32)
    at = [np.int32(at) for at in (-5, 2, 100)]
    samples = {
        "shapes": Sample(
            lambda x: [
                *(x.T, x.reshape(2, 6), x[None, :, None], jnp.broadcast_to(x, (2, 3, 4))),
                *(x[::2, 1:3], x[::-1], jnp.concatenate([x, x * 2], 1), jnp.tile(x, (2, 1))),
                *(lax.iota(np.int64, 5), lax.broadcasted_iota(np.float32, (2, 3), 1)),
                *(lax.pad(x, np.float32(7), [(1, 2, 1), (-1, 0, 2)]), jnp.roll(x, 1)),
            ],
            (x,),
        ),
        "nothing": Sample(
            lambda x: [
                *(x.T, x.reshape(4, 0), x.sum(), x.sum(0), x * 2, jnp.concatenate([x, x])),
                *(x @ jnp.ones((4, 2)), jnp.sort(x, 0), jnp.ones((2, 0)) @ x, x[:, 1:3]),
                *(x.max(1), jnp.zeros((0,), jnp.bfloat16), jnp.zeros((2, 0), np.complex64)),
            ],
            (none,),
        ),
        "one element at": Sample(lambda x, i: [x[i], x[i, 2], x[i % 2, 1:]], (x, np.int32(1))),
        "rows at": Sample(
            lambda x, i: [
                *(x[i], x[:, i % 4], x[i, i], x.at[i].get(mode="clip")),
                *(x.at[i].get(mode="fill"), x.at[i].get(mode="promise_in_bounds")),
                jnp.take_along_axis(x, i[:, None] % 4, 1),
            ],
            (x, np.array([0, 2, 9], np.int64)),
        ),
        "scatters": Sample(
            lambda x, i, v: [
                *(x.at[i].set(v), x.at[i].add(v), x.at[i].multiply(v), x.at[i].max(v)),
                *(x.at[i].min(v), x.at[i].subtract(v), x.at[:, i].add(v.T[:3, :2] * 2)),
                x.at[i, 1].set(v[:, 0], unique_indices=True, mode="drop"),
            ],
            (x, np.array([2, 7], np.int32), drawn(2, 4, seed=2)),
        ),
        "gradients of gathers": Sample(
            jax.grad(lambda x, i: (jnp.sin(x)[i] ** 2).sum()), (x, np.array([0, 0, 1], np.int32))
        ),
        "sorts": Sample(
            lambda x, n: [
                *(jnp.sort(x), jnp.sort(x, 0, descending=True), jnp.argsort(x, 1), jnp.sort(n)),
                lax.sort((x, x * 2, -x), num_keys=2),
                lax.sort((n, lax.iota(np.int32, n.size)), num_keys=1, is_stable=False),
                *(jnp.median(x), jnp.unique(n, size=3), lax.sort(n > 1), jnp.sort(x + 1j)),
                jnp.argsort(n.astype(jnp.bfloat16)),
            ],
            (x.round(), np.array([3, -1, 3, 2, 3], np.int32)),
        ),
        "greatest": Sample(
            lambda x, n: [lax.top_k(x, 2), lax.top_k(n, 3), jnp.argmax(x, 1), jnp.argmin(n)],
            (odd(np.float32).reshape(2, 7), np.array([3, -1, 3, 2, 3], np.int32)),
        ),
    }
    for number, index in enumerate(at):
        for dtype in (np.int8, np.int32, np.uint8, np.int64):
            samples[f"slice {number} at {np.dtype(dtype).name}"] = Sample(
                lambda x, i: [
                    lax.dynamic_slice(x, (i,), (4,), allow_negative_indices=False),
                    lax.dynamic_slice(x, (i,), (4,)),
                    lax.dynamic_update_slice(x, -x[:3], (i,), allow_negative_indices=False),
                ],
                (ten, index.astype(dtype)),
            )
    return samples


def contractions() -> dict[str, Sample]:
    """Products of matrices of every type, and convolutions of every form."""
    samples = {}
    for dtype in (*FLOATS, np.int8, np.int32, np.uint8, np.complex64):
        samples[f"products of {np.dtype(dtype).name}"] = Sample(
            lambda a, b: [
                *(a @ b, jnp.einsum("ij,ki->jk", a, b), a[0] @ a[1], jnp.vdot(a, a)),
                jnp.einsum("bij,bjk->bki", jnp.stack([a, a]), jnp.stack([b, b + b])),
            ],
            (drawn(3, 4, dtype=dtype), drawn(4, 3, dtype=dtype, seed=2)),
        )
    samples["products in another type"] = Sample(
        lambda a, b: [
            lax.dot(a.astype(np.int8), b.astype(np.int8), preferred_element_type=np.int32),
            lax.dot(
                a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), preferred_element_type=np.float32
            ),
            lax.dot(a, b, precision="highest"),
            lax.dot(a, b, precision=("high", "default")),
        ],
        (drawn(3, 4), drawn(4, 3)),
    )
    return samples


def convolve(**options: Any) -> Callable[..., Any]:
    """Return a convolution of two-dimensional images."""
    options = {"window_strides": (1, 1), "padding": "SAME"} | options
    return lambda image, kernel: lax.conv_general_dilated(image, kernel, **options)


LAYOUT = ("NHWC", "HWIO", "NHWC")
CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "plain": (convolve(), (2, 3, 5, 6), (4, 3, 3, 2)),
    "strided": (convolve(window_strides=(2, 1), padding="VALID"), (2, 3, 5, 6), (4, 3, 3, 2)),
    "padded": (convolve(padding=[(2, -1), (0, 3)]), (1, 3, 5, 6), (4, 3, 3, 2)),
    "dilated": (
        convolve(lhs_dilation=(2, 1), rhs_dilation=(1, 2), padding=[(1, 1), (2, 1)]),
        (2, 3, 5, 6),
        (4, 3, 3, 2),
    ),
    "in groups": (convolve(feature_group_count=2), (2, 4, 5, 6), (6, 2, 3, 2)),
    "for each feature": (convolve(feature_group_count=4), (2, 4, 5, 6), (4, 1, 3, 2)),
    "in groups of images": (convolve(batch_group_count=2), (4, 3, 5, 6), (6, 3, 3, 2)),
    "features last": (convolve(dimension_numbers=LAYOUT), (2, 5, 6, 3), (3, 2, 3, 4)),
}


def convolutions() -> dict[str, Sample]:
    """Convolutions of every form, and their gradients."""
    samples = {}
    for name, (function, image, kernel) in CONVOLUTIONS.items():
        arguments = (drawn(*image), drawn(*kernel, seed=2))
        samples[f"convolution {name}"] = Sample(function, arguments)
        samples[f"gradients of convolution {name}"] = Sample(
            jax.grad(lambda a, b, f=function: (f(a, b) ** 2).sum(), (0, 1)), arguments
        )
    plain, image, kernel = CONVOLUTIONS["plain"]
    for dtype in (np.float64, jnp.bfloat16):
        samples[f"convolution of {np.dtype(dtype).name}"] = Sample(
            plain, (drawn(*image, dtype=dtype), drawn(*kernel, dtype=dtype))
        )
    samples["convolution of one dimension"] = Sample(
        lambda a, b: jnp.convolve(a, b), (drawn(7), drawn(3))
    )
    return samples


def windows() -> dict[str, Sample]:
    """Reductions, of the whole and of windows."""
    samples = {}
    for dtype in (*FLOATS, np.int32, np.uint8, np.int64):
        samples[f"reductions of {np.dtype(dtype).name}"] = Sample(
            lambda x: [
                *(x.sum(), x.sum(0), x.max(1), x.min((0, 1)), x.prod(1), jnp.cumsum(x, 1)),
                *(jnp.cumprod(x, 0), lax.cummax(x, 1), jnp.argmax(x, 0), x.mean(0)),
                lax.reduce(x, np.array(2, x.dtype), lax.add, (1,)),
                lax.reduce(x, np.array(1, x.dtype), lambda a, b: a * b + a, (0,)),
            ],
            (drawn(3, 4, dtype=dtype),),
        )
    samples["reductions of bits"] = Sample(
        lambda x: [
            lax.reduce(x, np.int32(start), function, (0,))
            for start, function in (
                (-1, lax.bitwise_and),
                (0, lax.bitwise_or),
                (0, lax.bitwise_xor),
            )
        ],
        (np.arange(12, dtype=np.int32).reshape(3, 4),),
    )
    samples["reductions of two arrays"] = Sample(
        lambda x: lax.reduce(
            (x, x * 2),
            (np.float32(0), np.float32(1)),
            lambda a, b: (a[0] + b[0] * b[1], jnp.maximum(a[1], b[1])),
            (1,),
        ),
        (drawn(3, 4),),
    )

    def pool(x: Any, start: Any, function: Any, **options: Any) -> Any:
        return lax.reduce_window(x, np.array(start, x.dtype), function, (2, 3), **options)

    samples["windows"] = Sample(
        lambda x: [
            pool(x, 0, lax.add, window_strides=(1, 2), padding="SAME"),
            pool(x, -np.inf, lax.max, window_strides=(2, 2), padding="VALID"),
            pool(x, np.inf, lax.min, window_strides=(1, 1), padding=[(1, 0), (2, 1)]),
            pool(x, 1, lax.mul, window_strides=(1, 1), padding="VALID", window_dilation=(2, 1)),
            pool(x, 0, lax.add, window_strides=(1, 1), padding="SAME", base_dilation=(1, 2)),
            pool(x, 0, lambda a, b: a * 2 + b, window_strides=(1, 1), padding="SAME"),
        ],
        (drawn(5, 6),),
    )
    for name, start, function in (("most", -np.inf, lax.max), ("least", np.inf, lax.min)):
        samples[f"gradients of {name} in windows"] = Sample(
            jax.grad(
                lambda x, s=start, f=function: (
                    pool(x, s, f, window_strides=(2, 1), padding="SAME") ** 2
                ).sum()
            ),
            (drawn(5, 6).round(),),
        )
    return samples


def collatz(number: Any) -> Any:
    """The steps from a number to one: a loop of as many for each client."""

    def step(state: Any) -> Any:
        value, steps = state
        return jnp.where(value % 2 == 0, value // 2, value * 3 + 1), steps + 1

    return lax.while_loop(lambda state: state[0] > 1, step, (number, np.int32(0)))


def control() -> dict[str, Sample]:
    """Loops, branches and calls."""
    key = jax.random.key_data(jax.random.key(3))
    samples = {
        "while": Sample(collatz, (np.int32(27),)),
        "fori": Sample(lambda n: lax.fori_loop(0, n, lambda i, s: s * 3 + i, n), (np.int32(5),)),
        "scan": Sample(
            lambda x: lax.scan(lambda s, row: (jnp.tanh(s + row), s.sum()), x[0], x),
            (drawn(3, 4),),
        ),
        "scans in a scan": Sample(
            lambda x: lax.scan(
                lambda s, row: (lax.scan(lambda a, b: (a * b + s, a), s, row)[0], s),
                np.float32(1),
                x,
            ),
            (drawn(3, 4),),
        ),
        "scan in a branch": Sample(
            lambda x: lax.cond(
                x[0, 0] > 0,
                lambda x: lax.scan(lambda s, r: (s * r, None), x[0], x)[0],
                lambda x: x[1],
                x,
            ),
            (drawn(3, 4),),
        ),
        "calls": Sample(
            lambda x: jax.jit(lambda a: jax.jit(jnp.sin)(a) * 2)(x) + jax.nn.relu(x), (drawn(3),)
        ),
        "special functions": Sample(
            lambda x: [
                *(lax.erf(x), lax.erfc(x), lax.erf_inv(x / 4), lax.lgamma(x), lax.digamma(x)),
                *(lax.asin(x / 4), lax.acos(x / 4), lax.atan(x), jax.nn.gelu(x, approximate=False)),
                *(lax.asinh(x), lax.acosh(x + 5), lax.atanh(x / 4), lax.sinh(x), lax.cosh(x)),
            ],
            (drawn(7).clip(-3, 3),),
        ),
        "barrier": Sample(lambda x: lax.optimization_barrier((x, x + 1)), (drawn(3),)),
        "draws": Sample(
            lambda seed: [
                jax.random.normal(jax.random.key(seed), (3,)),
                jax.random.permutation(jax.random.key(seed), 5),
                jax.random.randint(jax.random.key(seed), (4,), 0, 9),
            ],
            (np.int32(5),),
        ),
        "Fourier transforms": Sample(
            lambda x: [
                *(jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(x), jnp.fft.ifft2(x[None])),
            ],
            (drawn(4, 6),),
        ),
    }
    for name in ("default", "three_fry", "philox"):
        algorithm = lax.RandomAlgorithm[f"RNG_{name.upper()}"]
        state = np.concatenate([key, key]).view(np.uint64)
        dtypes: tuple[Any, ...] = (np.uint8, np.uint32, np.uint64)
        for dtype in dtypes:
            samples[f"bits of {name} as {np.dtype(dtype).name}"] = Sample(
                lambda state, algorithm=algorithm, dtype=dtype: lax.rng_bit_generator(
                    state, (3, 2), dtype, algorithm
                ),
                (state,),
            )
    for number in (-3, 0, 1, 2, 7):
        samples[f"switch {number}"] = Sample(
            lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x * 2], x),
            (np.int32(number), drawn(3)),
        )
    return samples


SAMPLES: dict[str, Sample] = {
    **elementwise(),
    **conversions(),
    **shapes(),
    **contractions(),
    **convolutions(),
    **windows(),
    **control(),
}
