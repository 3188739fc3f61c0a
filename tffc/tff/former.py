"""Former names in TFF's libraries, and their names today."""

from __future__ import annotations

import functools
import importlib
import operator
import warnings
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import Any

from tffc.support.errors import MissingElementError

_PYTHON = "tensorflow_federated.python"

RENAMED: dict[str, dict[str, str]] = {
    f"{_PYTHON}.learning": {
        "BatchOutput": "models.BatchOutput",
        "Model": "models.VariableModel",
        "ModelWeights": "models.ModelWeights",
        "from_keras_model": "models.from_keras_model",
    },
    f"{_PYTHON}.learning.models": {"Model": "VariableModel"},
    f"{_PYTHON}.simulation": {
        "ClientData": "datasets.ClientData",
        "FilePerUserClientData": "datasets.FilePerUserClientData",
        "FromTensorSlicesClientData": "datasets.TestClientData",
        "SqlClientData": "datasets.SqlClientData",
        "TestClientData": "datasets.TestClientData",
        "TransformingClientData": "datasets.TransformingClientData",
    },
    f"{_PYTHON}.simulation.datasets": {"FromTensorSlicesClientData": "TestClientData"},
}
"""Today's names, relative to the module, by those of older releases."""

GONE: dict[str, dict[str, str]] = {
    f"{_PYTHON}.learning": {
        "assign_weights_to_keras_model": "call process.get_model_weights(state)."
        "assign_weights_to(keras_model)",
        "build_federated_averaging_process": "use tff.learning.algorithms.build_weighted_fed_avg, "
        "whose rounds give an output with state and metrics; the model is "
        "process.get_model_weights(state)",
        "build_federated_evaluation": "use tff.learning.algorithms.build_fed_eval, a process whose "
        "set_model_weights takes the model",
        "build_federated_sgd_process": "use tff.learning.algorithms.build_fed_sgd",
        "build_personalization_eval": "use "
        "tff.learning.algorithms.build_personalization_eval_computation",
        "state_with_new_model_weights": "call process.set_model_weights(state, weights)",
    },
}
"""Advice for former names that have no equivalent today."""


def _name(module: str, name: str) -> Any:
    """Return the object that a module's former name refers to, with a warning at the user's line.

    Raises:
      MissingElementError: it has no equivalent today.
      AttributeError: the module never had the name.
    """
    written = f"tff{module.removeprefix(_PYTHON)}"
    today = RENAMED.get(module, {}).get(name)
    if today is not None:
        warnings.warn(
            f"{written}.{name} is now {written}.{today}", DeprecationWarning, stacklevel=2
        )
        path, _, last = f"{module}.{today}".rpartition(".")
        return getattr(importlib.import_module(path), last)
    instead = GONE.get(module, {}).get(name)
    if instead is not None:
        raise MissingElementError(
            "E739", f"TFF 0.87 has no {written}.{name}, which older releases had", help=instead
        )
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


BUILDERS = (
    "build_fed_eval",
    "build_fed_recon",
    "build_fed_recon_eval",
    "build_fed_sgd",
    "build_mime_lite_with_optimizer_schedule",
    "build_unweighted_fed_avg",
    "build_unweighted_fed_prox",
    "build_unweighted_mime_lite",
    "build_weighted_fed_avg",
    "build_weighted_fed_avg_with_optimizer_schedule",
    "build_weighted_fed_prox",
    "build_weighted_mime_lite",
)
"""Functions of `tff.learning.algorithms` that took other arguments in older releases."""

ADAPTED = {
    f"{_PYTHON}.learning.algorithms": dict.fromkeys(
        BUILDERS, "former_arguments.with_former_arguments"
    ),
    f"{_PYTHON}.learning.metrics": {
        "create_functional_metric_fns": "keras_functions.metrics_for_keras_3",
    },
    f"{_PYTHON}.learning.models": {
        "from_keras_model": "keras_models.for_keras_3",
        "functional_model_from_keras": "keras_functions.functional_for_keras_3",
        "ReconstructionModel.from_keras_model_and_layers": "keras_models.refusing_keras_3",
    },
}
"""Functions of the libraries that take more here, and what extends them."""


class FormerNamesLoader(SourceFileLoader):
    """Loads a module of a library, adds its former names and extends its functions."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for name, path in ADAPTED.get(module.__name__, {}).items():
            home, _, extend = path.partition(".")
            extended = getattr(importlib.import_module(f"tffc.tff.{home}"), extend)
            owner, _, function = f".{name}".rpartition(".")
            holder = operator.attrgetter(owner[1:])(module) if owner else module
            adapted = extended(getattr(holder, function))
            setattr(holder, function, adapted if holder is module else staticmethod(adapted))
        vars(module)["__getattr__"] = functools.partial(_name, module.__name__)


def with_former_names(spec: ModuleSpec | None) -> ModuleSpec | None:
    """Return the spec of a module, changed to add its former names if it has any."""
    if spec is not None and spec.name in {*RENAMED, *GONE, *ADAPTED}:
        spec.loader = FormerNamesLoader(spec.name, spec.origin or "")
    return spec
