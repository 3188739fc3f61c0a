"""Matrix products, convolutions, pools, normalization and losses give what TensorFlow gives."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tests.runtime.lowering.operations.samples import (
    Sample,
    compare,
    compare_all,
    floats,
    integers,
    ints,
    positive,
    sample,
)

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
NEAR = 1e-5
COMPLEX = (floats(2, 3, 3) + 1j * floats(2, 3, 3, seed=1)).astype(np.complex64)


def close(*inputs: Any, **attributes: Any) -> Sample:
    """A sample whose sums TensorFlow takes in another order."""
    wide = any(getattr(value, "dtype", None) == F64 for value in inputs)
    return sample(*inputs, tolerance=1e-12 if wide else NEAR, **attributes)


def batches(name: str) -> list[Sample]:
    samples = [
        close(floats(2, 3, 4), floats(2, 4, 5)),
        close(floats(2, 4, 3), floats(2, 4, 5), adj_x=True),
        close(floats(2, 3, 4), floats(2, 5, 4), adj_y=True),
        close(COMPLEX, COMPLEX[::-1], adj_x=True, adj_y=True),
        close(floats(2, 3, 4, dtype=F64), floats(2, 4, 5, dtype=F64)),
    ]
    if name == "BatchMatMul":
        return samples
    samples = [
        *samples,
        close(floats(1, 2, 3, 4), floats(5, 1, 4, 2)),
        close(floats(3, 4), floats(2, 4, 5)),
    ]
    if name == "BatchMatMulV3":
        for item in samples:
            item.attributes["Tout"] = item.inputs[0].dtype
        small = integers(2, 3, 4, dtype=np.int8), integers(2, 4, 2, dtype=np.int8)
        samples.append(sample(*small, Tout=tf.int32))
    return samples


LINEAR = {
    **{name: batches(name) for name in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")},
    "MatMul": [
        close(floats(3, 4), floats(4, 5)),
        close(floats(4, 3), floats(4, 5), transpose_a=True),
        close(floats(3, 4), floats(5, 4), transpose_b=True),
        close(floats(4, 3), floats(5, 4), transpose_a=True, transpose_b=True),
        close(floats(3, 4, dtype=F64), floats(4, 5, dtype=F64)),
        sample(integers(3, 4), integers(4, 5)),
        sample(floats(3, 4, dtype=F16), floats(4, 5, dtype=F16)),
        sample(floats(3, 4, dtype=BF16), floats(4, 5, dtype=BF16), tolerance=0.02),
        close(np.zeros((3, 0), F32), np.zeros((0, 2), F32)),
    ],
    "Einsum": [
        close([floats(3, 4), floats(4, 5)], equation="ij,jk->ik"),
        close([floats(2, 3, 4), floats(2, 5, 4)], equation="bij,bkj->bki"),
        close([floats(2, 3, 4), floats(4, 5)], equation="...j,jk->...k"),
        close([floats(2, 3, 4)], equation="abc->ca"),
        close([floats(3, 3)], equation="ii->i"),
        close([floats(3), floats(4)], equation="i,j->ij"),
        close([floats(2, 3, 4, 5), floats(2, 6, 4, 5)], equation="BTNH,BSNH->BNTS"),
    ],
}

IMAGES = floats(2, 7, 8, 3)
FILTERS = floats(3, 2, 3, 4, seed=1)
EXPLICIT = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]}
WINDOWS: list[dict[str, Any]] = [
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    {"strides": [1, 2, 2, 1], "padding": "SAME"},
    {"strides": [1, 2, 1, 1], "padding": "VALID"},
    {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]},
    {"strides": [1, 2, 2, 1], **EXPLICIT},
]
DEPTHWISE = [
    dict(window, strides=[1, window["strides"][1], window["strides"][1], 1]) for window in WINDOWS
]


def result(function: Any, *inputs: Any, **attributes: Any) -> np.ndarray:
    """A gradient of the shape that a forward operation gives."""
    return floats(
        *function(**dict(zip(("input", "filter"), inputs, strict=True)), **attributes).shape, seed=3
    )


def convolved(
    kind: str, images: Any = IMAGES, filters: Any = FILTERS, windows: Any = None
) -> list[Sample]:
    samples: list[Sample] = []
    depthwise = "Depthwise" in kind
    function = tf.raw_ops.DepthwiseConv2dNative if depthwise else tf.raw_ops.Conv2D
    for window in windows or (DEPTHWISE if depthwise else WINDOWS):
        gradient = result(function, images, filters, **window)
        if depthwise and "dilations" in window and "Backprop" in kind:
            # TensorFlow fails on these.
            continue
        if kind.endswith("Input"):
            samples.append(close(ints(*images.shape), filters, gradient, **window))
        elif kind.endswith("Filter"):
            samples.append(close(images, ints(*filters.shape), gradient, **window))
        else:
            samples.append(close(images, filters, **window))
    return samples


GROUPED = floats(2, 5, 5, 4), floats(3, 3, 2, 6)
CONVOLUTIONS = {
    "Conv2D": [*convolved("Conv2D"), *convolved("Conv2D", *GROUPED, windows=WINDOWS[:2])],
    **{
        name: convolved(name)
        for name in (
            "Conv2DBackpropInput",
            "Conv2DBackpropFilter",
            "DepthwiseConv2dNative",
            "DepthwiseConv2dNativeBackpropInput",
            "DepthwiseConv2dNativeBackpropFilter",
        )
    },
}

POOLS: list[dict[str, Any]] = [
    {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
    {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"},
    {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME"},
]
TIES = integers(2, 6, 6, 2, least=0, end=3).astype(F32)


def pooled(kind: str) -> list[Sample]:
    samples: list[Sample] = []
    for pool in POOLS:
        if kind == "MaxPoolGrad":
            for images in (TIES, IMAGES):
                top = np.asarray(tf.raw_ops.MaxPool(input=images, **pool))
                samples.append(
                    sample(images, top, floats(*top.shape), **pool, known="orig_input orig_output")
                )
        elif kind == "AvgPoolGrad":
            shape = tf.raw_ops.AvgPool(value=IMAGES, **pool).shape
            samples.append(close(ints(*IMAGES.shape), floats(*shape), **pool))
        else:
            samples.append(sample(IMAGES, **pool))
            samples.append(sample(IMAGES.astype(F64), **pool))
    return samples


CHANNELS = [positive(3, seed=seed) for seed in range(4)]
EMPTY = np.zeros(0, F32)
NORMAL = floats(2, 4, 5, 3) * F32(2) + F32(1)


def normalized() -> list[Sample]:
    scale, offset, mean, variance = CHANNELS
    shared: dict[str, Any] = {"outputs": 3}
    return [
        close(NORMAL, scale, offset, EMPTY, EMPTY, epsilon=0.001, **shared),
        close(NORMAL, scale, offset, mean, variance, exponential_avg_factor=0.25, **shared),
        close(NORMAL, scale, offset, mean, variance, is_training=False, **shared),
        close(
            NORMAL.transpose(0, 3, 1, 2), scale, offset, EMPTY, EMPTY, data_format="NCHW", **shared
        ),
        sample(NORMAL.astype(F16), scale, offset, EMPTY, EMPTY, tolerance=4e-3, **shared),
    ]


def normalization_gradients() -> list[Sample]:
    scale, spare, mean, variance = CHANNELS
    gradient = floats(2, 4, 5, 3, seed=8)
    return [
        sample(
            gradient,
            NORMAL,
            scale,
            mean,
            variance,
            spare,
            tolerance=1e-4,
            outputs=3,
            is_training=training,
        )
        for training in (True, False)
    ]


LOGITS = floats(5, 4)
CHANCES = np.asarray(tf.nn.softmax(floats(5, 4, seed=2)))
LABELS = integers(5, least=0, end=4)

LOSSES = {
    "LogSoftmax": [sample(LOGITS), sample(LOGITS.astype(F64)), sample(LOGITS.astype(F16))],
    "Softmax": [sample(LOGITS), sample(LOGITS.astype(F64)), sample(floats(2, 3, 4) * F32(50))],
    "SoftmaxCrossEntropyWithLogits": [
        sample(LOGITS, CHANCES),
        sample(LOGITS, np.eye(4, dtype=F32)[LABELS]),
        sample(LOGITS.astype(F64), CHANCES.astype(F64)),
        sample(LOGITS, CHANCES[:1]),
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [
        sample(LOGITS, LABELS),
        sample(LOGITS.astype(F64), LABELS.astype(np.int64)),
        sample(LOGITS.astype(F16), LABELS),
    ],
}

SAMPLES = {
    **LINEAR,
    **CONVOLUTIONS,
    **{name: pooled(name) for name in ("AvgPool", "AvgPoolGrad", "MaxPool", "MaxPoolGrad")},
    "FusedBatchNormV3": normalized(),
    "FusedBatchNormGradV3": normalization_gradients(),
    **LOSSES,
}


@pytest.mark.parametrize("op", SAMPLES)
def test_computes_what_tensorflow_does(op: str) -> None:
    compare(op, SAMPLES[op], folds=op in LINEAR)


@pytest.mark.slow
@pytest.mark.parametrize("op", SAMPLES)
def test_computes_it_compiled(op: str) -> None:
    compare_all(op, SAMPLES[op])
