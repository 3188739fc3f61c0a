"""Federated averaging of pfl in its simulated backend."""

from __future__ import annotations

from collections.abc import Callable

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel

from benchmarks.rounds.torch_models import Network
from benchmarks.rounds.workloads import Workload


class ModelOfPfl(Network):
    """The network with the interface that pfl needs."""

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
        """Measure nothing, like the other sides."""
        return {}


def averaging(
    network: ModelOfPfl, workload: Workload, data: FederatedDataset, cohort: int
) -> Callable[[], None]:
    """Return a function that trains the network for a round, with the next clients of data."""
    model = PyTorchModel(
        network,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
    )
    backend = SimulatedBackend(
        training_data=data, val_data=None, postprocessors=[WeightByDatapoints()]
    )
    training = NNTrainHyperParams(
        local_learning_rate=workload.rate, local_num_epochs=1, local_batch_size=workload.batch
    )
    parameters = NNAlgorithmParams(
        central_num_iterations=2,
        evaluation_frequency=2,
        train_cohort_size=cohort,
        val_cohort_size=None,
    )

    def run() -> None:
        algorithm = FederatedAveraging()
        # The first one is evaluated, as no other side does.
        algorithm._current_central_iteration = 1
        algorithm.run(
            algorithm_params=parameters,
            backend=backend,
            model=model,
            model_train_params=training,
            model_eval_params=None,
            callbacks=[],
            send_metrics_to_platform=False,
        )

    return run
