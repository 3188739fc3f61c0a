"""Arguments that builders of `tff.learning.algorithms` took in older releases, as they are today.

Older releases took functions that make optimizers of Keras; today's take optimizers of
`tff.learning.optimizers`.  Where one of these computes the same, it takes the other's place.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from tffc.frontend.hints import described
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.user_code.source import call_theirs, entry_point
from tffc.support.errors import LanguageTypeError
from tffc.tff.former_names import calls_of_ours

OPTIMIZERS = "tensorflow_federated.python.learning.optimizers"

Optimizer: TypeAlias = Any
"""An optimizer of TFF's library or of Keras, which type checkers need not know."""


class Equal(NamedTuple):
    """What makes the optimizer that computes what one of Keras computes: a function of
    `tff.learning.optimizers`, and its parameters by the names that Keras has for them."""

    build: str
    parameters: Mapping[str, str]


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in ("learning_rate", *names)}


EQUAL = {
    "Adagrad": Equal(
        "build_adagrad",
        _same("epsilon") | {"initial_accumulator_value": "initial_preconditioner_value"},
    ),
    "Adam": Equal("build_adam", _same("beta_1", "beta_2", "epsilon")),
    "AdamW": Equal("build_adamw", _same("beta_1", "beta_2", "epsilon", "weight_decay")),
    "RMSprop": Equal("build_rmsprop", _same("epsilon") | {"rho": "decay"}),
    "SGD": Equal("build_sgdm", _same("momentum")),
}
"""What computes the same as the optimizers of Keras, by their names."""

DIFFERENT = {
    ("AdamW", False): "which decays weights otherwise than TFF's",
    ("Adagrad", True): "which adds epsilon elsewhere than TFF's",
    ("RMSprop", False): "which adds epsilon elsewhere than TFF's",
}
"""How optimizers of Keras compute something else, by their names and whether Keras calls them
legacy."""

SCHEDULED = "build_weighted_fed_avg_with_optimizer_schedule"
"""The builder that takes a function from a learning rate to an optimizer."""

INSTEAD = {
    "aggregation_process": "model_aggregator, a factory of tff.aggregators",
    "broadcast_process": "model_distributor, a process of tff.learning.templates",
    "client_weight_fn": "client_weighting, such as tff.learning.ClientWeighting.NUM_EXAMPLES",
    "model_update_aggregation_factory": "model_aggregator",
    "stateful_delta_aggregate_fn": "model_aggregator, a factory of tff.aggregators",
    "stateful_model_broadcast_fn": "model_distributor, a process of tff.learning.templates",
}
"""Today's arguments by the names of former ones, whose values have to be changed too."""


def with_former_arguments(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a builder of TFF's, extended to the arguments that older releases took."""
    signature = inspect.signature(theirs)
    of_optimizers = [name for name in signature.parameters if "optimizer" in name]

    @functools.wraps(theirs)
    @entry_point
    def build(*args: Any, **kwargs: Any) -> Any:
        _refuse_former(theirs.__name__, signature, kwargs)
        if kwargs.pop("use_experimental_simulation_loop", None) is not None:
            _warn("use_experimental_simulation_loop has no effect any more")
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:
            # It says itself what is wrong.
            return call_theirs(theirs, *args, **kwargs)
        for name in of_optimizers:
            if bound.get(name) is not None:
                is_scheduled = theirs.__name__ == SCHEDULED and name == "client_optimizer_fn"
                bound[name] = (_scheduled if is_scheduled else optimizer_of)(bound[name], name)
        return call_theirs(theirs, **bound)

    return build


def _refuse_former(builder: str, signature: inspect.Signature, kwargs: Mapping[str, Any]) -> None:
    """Check that no argument has a name that only older releases had.

    Raises:
      LanguageTypeError: one has.
    """
    for name in kwargs:
        if name in INSTEAD and name not in signature.parameters:
            raise LanguageTypeError(
                "E739",
                f"TFF 0.87's {builder} has no {name}, which older releases had",
                help=f"give {INSTEAD[name]}",
            )


def optimizer_of(value: Any, argument: str) -> Optimizer:
    """Return the optimizer of TFF's that an argument means: itself, what a function makes, or what
    computes the same as an optimizer of Keras.

    Raises:
      LanguageTypeError: it is none, or none computes the same.
    """
    if _is_theirs(value):
        return value
    optimizer = _of_function(value) if callable(value) and not _is_of_keras(value) else value
    if _is_theirs(optimizer):
        return optimizer
    if not _is_of_keras(optimizer):
        raise LanguageTypeError(
            "E739",
            f"{argument} must be an optimizer of tff.learning.optimizers, not "
            f"{described(optimizer)}",
            help=f"give {argument}=tff.learning.optimizers.build_sgdm(0.1) or the like",
        )
    build, arguments = _equal(optimizer, argument)
    words = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    _warn(f"{argument} is now an optimizer of TFF: tff.learning.optimizers.{build}({words})")
    return getattr(importlib.import_module(OPTIMIZERS), build)(**arguments)


def _scheduled(value: Any, argument: str) -> Any:
    """Return a function from learning rates to optimizers as it is, but refuse those of Keras."""

    @functools.wraps(value)
    def optimizer_at(rate: Any) -> Optimizer:
        optimizer = call_theirs(value, rate)
        if _is_of_keras(optimizer):
            raise LanguageTypeError(
                "E739",
                f"{argument} must make an optimizer of tff.learning.optimizers, not one of Keras",
                help=f"give {argument}=lambda rate: tff.learning.optimizers.build_sgdm(rate)",
            )
        return optimizer

    return optimizer_at if callable(value) else value


def _of_function(make: Callable[[], Any]) -> Any:
    # Variables of Keras have values outside of graphs.
    with load_tensorflow().init_scope():
        return call_theirs(make)


def _is_theirs(value: object) -> bool:
    return isinstance(value, importlib.import_module(OPTIMIZERS).Optimizer)


def _is_of_keras(value: object) -> TypeGuard[Optimizer]:
    """Return whether an object, and not a class, is an optimizer of Keras."""
    kinds = type(value).__mro__
    return any(
        kind.__module__.split(".")[0] in ("keras", "tf_keras") for kind in kinds
    ) and hasattr(value, "get_config")


def _equal(optimizer: Optimizer, argument: str) -> tuple[str, dict[str, float]]:
    """Return the function and its arguments that make what computes the same as an optimizer of
    Keras.

    Raises:
      LanguageTypeError: none does.
    """
    kind: Any = type(optimizer)  # pyright: ignore[reportUnknownVariableType]  # of Keras
    name = kind.__name__
    equal = EQUAL.get(name)
    if equal is None or not kind.__module__.startswith(("keras.", "tf_keras.")):
        raise _without_equal(argument, f"{name}, which has no equal in TFF", "")
    config, usual = optimizer.get_config(), kind().get_config()
    rate = config["learning_rate"]
    if isinstance(rate, Mapping):
        raise _without_equal(argument, f"{name} with a schedule of learning rates", "")
    others = [
        key
        for key, value in config.items()
        if key not in ("name", *equal.parameters) and value != usual.get(key)
    ]
    arguments = {
        today: float(config[former])
        for former, today in equal.parameters.items()
        if former != "momentum" or config[former]
    }
    arguments["learning_rate"] = _shortest(rate)
    nearest = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    nearest = f"{argument}=tff.learning.optimizers.{equal.build}({nearest})"
    if others:
        raise _without_equal(argument, f"{name} with {', '.join(others)}", nearest)
    different = DIFFERENT.get((name, ".legacy." in kind.__module__))
    if different is not None:
        raise _without_equal(argument, f"{name}, {different}", nearest)
    return equal.build, arguments


def _shortest(rate: Any) -> float:
    """Return a learning rate, which Keras rounds to a float32, in as few digits as that needs."""
    return float(str(importlib.import_module("numpy").float32(rate)))


def _without_equal(argument: str, what: str, nearest: str) -> LanguageTypeError:
    """Return the error for an optimizer of Keras that no optimizer of TFF's equals."""
    help = f"nearest is {nearest}" if nearest else "give one of tff.learning.optimizers"
    return LanguageTypeError(
        "E739",
        f"{argument} is an optimizer of Keras, {what}; TFF 0.87 takes those of "
        "tff.learning.optimizers",
        help=help,
    )


def _warn(message: str) -> None:
    warnings.warn(message, DeprecationWarning, stacklevel=calls_of_ours())
