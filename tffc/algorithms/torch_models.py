"""Models in PyTorch."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.examples import columns_of, shape_of
from tffc.algorithms.functions import (
    Arrays,
    BatchLosses,
    M,
    OpenModel,
    check_metrics,
    types_of,
)
from tffc.frontend.hints import described
from tffc.frontend.torch import draws, modules
from tffc.frontend.torch.arrays import tensor_of
from tffc.frontend.torch.releases import load_torch
from tffc.runtime.user_code.source import call_theirs
from tffc.support.errors import LanguageTypeError, LanguageValueError, TffcError

TRIAL = 3
"""The number of examples in the batch on which a model is tried."""

MOST_OF_CONSTANTS = 1_000
"""The most frozen numbers of a model, such as counters of normalizations, that are constants of its
program; more are a resource."""

PAIRED = "Using a target size"
"""How PyTorch's warning begins that a loss pairs each label with each prediction."""


def torch_model(
    cls: type[M],
    source: Any,
    examples: Any,
    x: Any,
    y: str,
    loss: Any,
    metrics: Iterable[Any] | Mapping[str, Any],
    buffers: Mapping[str, Any] | None,
    *,
    drop_remainder: bool,
) -> M:
    """Return the model of a module of PyTorch; see `Model.from_torch`."""
    torch = load_torch()
    is_function = callable(source) and not isinstance(source, torch.nn.Module)
    module = call_theirs(source) if is_function else source
    held = modules.weights(module, buffers)
    if not held.trained:
        raise LanguageValueError(
            "E706",
            f"{type(module).__name__} has no parameter to train",
            help="set requires_grad=True on the parameters that training moves",
        )
    args, kwargs = _inputs(x)
    columns = columns_of(examples, {*args, *kwargs.values(), y})
    _check_columns(columns)
    call = _MeasuredModule(
        module, args, kwargs, y, _loss_of(torch, loss), _metrics_of(torch, metrics, loss)
    )
    is_large = sum(array.size for array in held.frozen.values()) > MOST_OF_CONSTANTS
    constants = {} if is_large else {n: tensor_of(array) for n, array in held.frozen.items()}

    def losses(weights: Arrays, batch: Arrays, training: bool) -> BatchLosses:
        changing = {*held.averaged, *held.local}
        return call.losses({**constants, **weights}, batch, training, changing)

    first = OrderedDict({**held.trained, **held.averaged})
    model = cls(
        columns,
        types_of(first),
        tuple(held.trained),
        tuple(held.averaged),
        tuple(call.metrics),
        "torch",
        first,
        lambda: OpenModel(losses),
        _restoring(module, {**held.frozen, **held.local}),
        local=held.local,
        frozen=held.frozen if is_large else OrderedDict(),
        drop_remainder=drop_remainder,
    )
    check_metrics(model.metrics)
    tried = _try(model, losses)
    if tried.mixes_examples and not drop_remainder:
        raise LanguageValueError(
            "E706",
            f"{type(module).__name__} normalizes by the mean of its batch in training, and the "
            "last batch of a client would be filled up with copies of its last example",
            help="give drop_remainder=True, so that a client trains on full batches only; or take "
            "a layer such as torch.nn.GroupNorm, which treats each example by itself",
        )
    return dataclasses.replace(model, draws=tried.draws)


@dataclasses.dataclass(frozen=True)
class _MeasuredModule:
    """A module with the columns that it takes, its loss and its metrics."""

    module: Any
    args: list[str]
    kwargs: Mapping[str, str]
    y: str
    loss: Callable[[Any, Any], Any]
    metrics: Mapping[str, Callable[[Any, Any], Any]]

    def losses(
        self, weights: Mapping[str, Any], batch: Arrays, training: bool, changing: set[str]
    ) -> BatchLosses:
        """Return what the module says of a batch, and those buffers that are `changing`."""
        with _mode(self.module, is_training=training):
            outputs, after = modules.call_and_update(
                self.module,
                weights,
                *(batch[name] for name in self.args),
                **{key: batch[name] for key, name in self.kwargs.items()},
            )
        labels = batch[self.y]
        changed = {name: value for name, value in after.items() if training and name in changing}
        metrics = OrderedDict(
            (name, self._of_each(name, metric, outputs, labels))
            for name, metric in self.metrics.items()
        )
        each = self._of_each("loss", self.loss, outputs, labels)
        return BatchLosses(each, metrics, changed=changed)

    def _of_each(self, name: str, function: Callable[..., Any], outputs: Any, labels: Any) -> Any:
        """Return one number for each example: the mean of the numbers of its parts.

        Raises:
          LanguageTypeError: there is none for each, or labels have another shape than outputs.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=PAIRED)
            try:
                values = call_theirs(function, outputs, labels)
            except UserWarning as warning:
                if not str(warning).startswith(PAIRED):
                    raise
                raise LanguageTypeError(
                    "E101",
                    f"the labels {self.y!r} have the shape {[*labels.shape[1:]]}, and the module "
                    f"gives {[*outputs.shape[1:]]}",
                    help="let the module end with as many numbers as a label has, for example by "
                    ".squeeze(-1)",
                ) from None
        shape = getattr(values, "shape", None)
        if not shape or shape[0] != len(labels):
            what = described(values) if shape is None else f"of the shape {[*shape]}"
            raise LanguageTypeError(
                "E454",
                f"the model's {name} is {what} for a batch of {len(labels)} examples, not a "
                "number for each",
                help="return the value of each example, as by "
                'functools.partial(F.cross_entropy, reduction="none")',
            )
        values = values if values.is_floating_point() else values.to(load_torch().float32)
        return values.flatten(1).mean(1) if len(shape) > 1 else values


@dataclasses.dataclass
class _Tried:
    """What a model does in training: whether it draws, and whether examples of a batch influence
    each other."""

    draws: bool = False
    mixes_examples: bool = False


def _try(model: Any, losses: Callable[[Arrays, Arrays, bool], BatchLosses]) -> _Tried:
    """Return what a model does on a batch; it is refused as it would be in a training."""
    tried = _Tried()
    torch = load_torch()
    draw_watch, mean_watch = _watches(torch)

    def trial(weights: Arrays, batch: Arrays) -> Any:
        measured = losses(weights, batch, False)
        with draws.draws(0), draw_watch(tried), mean_watch(tried):
            trained = losses(weights, batch, True)
        return measured.losses, measured.metrics, trained.losses

    batch = OrderedDict(
        (name, tffc.TensorType(type.dtype, [TRIAL, *shape_of(type)]))
        for name, type in model.examples.items()
    )
    weights = OrderedDict({**model.weights, **types_of({**model.local, **model.frozen})})
    try:
        tffc.torch_computation(trial, weights, batch)
    except TffcError as error:
        if error.span is not None and error.span.file == __file__:
            error.span = None  # so that it points at the user's line
        raise
    return tried


@functools.cache
def _watches(torch: Any) -> tuple[type[Any], type[Any]]:
    """Return the modes that see draws, and means over a batch.

    Only the names of PyTorch's functions tell the means of a batch from those of one example, which
    are computed by the same operations.
    """
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    overrides = importlib.import_module("torch.overrides")

    class DrawWatch(dispatch.TorchDispatchMode):
        def __init__(self, tried: _Tried) -> None:
            super().__init__()
            self._tried = tried

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self._tried.draws |= draws.is_draw(func)
            return func(*args, **(kwargs or {}))

    class MeanWatch(overrides.TorchFunctionMode):
        def __init__(self, tried: _Tried) -> None:
            super().__init__()
            self._tried = tried

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if func in (torch.batch_norm, torch.nn.functional.batch_norm):
                training = kwargs["training"] if "training" in kwargs else args[5:6] == (True,)
                self._tried.mixes_examples |= bool(training)
            return func(*args, **kwargs)

    return DrawWatch, MeanWatch


@contextlib.contextmanager
def _mode(module: Any, *, is_training: bool) -> Generator[None]:
    """Put a module into the mode of training or evaluation, and back."""
    before = [(part, part.training) for part in module.modules()]
    module.train(is_training)
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


def _restoring(module: Any, others: Mapping[str, Any]) -> Callable[[Arrays], Any]:
    """Return what makes a `state_dict` of trained weights and the `others`, for `load_state_dict`.

    Tied weights have all their names in it.
    """
    held = [*module.named_parameters(), *module.named_buffers()]
    first = {id(tensor): name for name, tensor in held}
    state = module.state_dict(keep_vars=True)
    names = {name: first.get(id(value)) for name, value in state.items()}
    extra = {name: copy.deepcopy(state[name]) for name in state if names[name] is None}

    def restore(weights: Arrays) -> OrderedDict[str, Any]:
        arrays = {**others, **weights}
        return OrderedDict(
            (name, extra[name] if own is None else tensor_of(arrays[own]))
            for name, own in names.items()
        )

    return restore


def _inputs(x: Any) -> tuple[list[str], dict[str, str]]:
    """Return the columns that are a module's positional arguments, and those by keyword.

    Raises:
      LanguageTypeError: `x` names none.
    """
    if isinstance(x, str):
        return [x], {}
    if isinstance(x, Mapping) and x and all(isinstance(each, str) for each in x.values()):
        return [], dict(x)
    if isinstance(x, list | tuple) and x and all(isinstance(each, str) for each in x):
        return list(x), {}
    raise LanguageTypeError(
        "E714",
        f"x={x!r} does not name a column of the examples",
        help='give the name of one, as x="pixels", a list of names for several arguments, or a '
        'mapping from keyword arguments to names, as x={"input_ids": "tokens"}',
    )


def _check_columns(columns: Mapping[str, tffc.TensorType]) -> None:
    """Check that columns are tensors that PyTorch has, of one shape for all examples.

    Raises:
      LanguageTypeError: one is text, or of a shape that is not known.
    """
    for name, type in columns.items():
        if type.dtype == np.str_:
            raise LanguageTypeError(
                "E101",
                f"the column {name!r} is text, of which PyTorch has no tensors",
                help="turn it into numbers first, for example by a tokenizer",
            )
        if None in shape_of(type):
            raise LanguageTypeError(
                "E101",
                f"the column {name!r} is of type `{type}`, whose shape is not known",
                help="pad it to one length first: a compiled step has one shape for all batches",
            )


def _loss_of(torch: Any, loss: Any) -> Callable[[Any, Any], Any]:
    """Return a loss as a function of outputs and labels.

    Raises:
      LanguageValueError: there is none.
    """
    if isinstance(loss, torch.nn.Module) and hasattr(loss, "reduction"):
        loss = copy.copy(loss)
        loss.reduction = "none"
    if callable(loss):
        return loss
    raise LanguageValueError(
        "E706",
        "the model has no loss" if loss is None else f"{loss!r} is not a loss",
        help="give loss=torch.nn.CrossEntropyLoss(), or a function of what the module returns and "
        "the labels, with a value for each example",
    )


def _metrics_of(torch: Any, metrics: Any, loss: Any) -> OrderedDict[str, Callable[..., Any]]:
    """Return the metrics by name.

    Raises:
      LanguageTypeError: one is neither "accuracy" nor a function.
    """
    if not isinstance(metrics, Mapping):
        metrics = {_name(each): each for each in metrics}
    functions: OrderedDict[str, Callable[..., Any]] = OrderedDict()
    for name, metric in metrics.items():
        if metric == "accuracy":
            metric = _accuracy(_is_of_probabilities(torch, loss))
        if not callable(metric):
            raise LanguageTypeError(
                "E714",
                f"the metric {name!r} is {type(metric).__name__!r}, and no function",
                help='give "accuracy", or a function of outputs and labels with a value for each '
                "example",
            )
        functions[str(name)] = metric
    return functions


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    return getattr(getattr(metric, "func", metric), "__name__", "metric")


def _is_of_probabilities(torch: Any, loss: Any) -> bool:
    """Tell whether a loss compares labels of 0 and 1 with probabilities, not with logits."""
    function = getattr(loss, "func", loss)
    return (
        isinstance(loss, torch.nn.BCELoss) or function is torch.nn.functional.binary_cross_entropy
    )


def _accuracy(of_probabilities: bool) -> Callable[[Any, Any], Any]:
    """Return the metric whether an answer is right."""

    def accuracy(outputs: Any, labels: Any) -> Any:
        outputs = getattr(outputs, "logits", outputs)
        if outputs.ndim == 1 or outputs.shape[1:] == (1,):
            guesses = outputs.flatten() > (0.5 if of_probabilities else 0.0)
            return guesses == (labels.flatten() > 0.5)
        return outputs.argmax(1) == labels

    return accuracy
