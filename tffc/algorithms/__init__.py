"""Federated algorithms for people who do not want to write one: `tffc.algorithms`.

    Model                               what is trained: of Keras, PyTorch, JAX or TensorFlow
    federated_averaging, fedprox        processes whose rounds train a model
    scaffold                            the same, where clients keep what corrects their drift
    federated_evaluation                the loss and the metrics of a trained model
    personalised_evaluation             the same before and after each client has trained it
    SGD, Adam, Yogi, Adagrad            optimizers of the server and of the clients
    Median, TrimmedMean                 averages that a few clients cannot move far
    private_sum                         a sum over clients with discrete noise

Each algorithm is a process or a computation in tffc's own language, as users write it.
"""

from tffc.algorithms.averages import Median as Median
from tffc.algorithms.averages import TrimmedMean as TrimmedMean
from tffc.algorithms.controls import scaffold as scaffold
from tffc.algorithms.evaluation import federated_evaluation as federated_evaluation
from tffc.algorithms.evaluation import personalised_evaluation as personalised_evaluation
from tffc.algorithms.model import Model as Model
from tffc.algorithms.optimizers import SGD as SGD
from tffc.algorithms.optimizers import Adagrad as Adagrad
from tffc.algorithms.optimizers import Adam as Adam
from tffc.algorithms.optimizers import Optimizer as Optimizer
from tffc.algorithms.optimizers import Yogi as Yogi
from tffc.algorithms.private_sums import private_sum as private_sum
from tffc.algorithms.training import federated_averaging as federated_averaging
from tffc.algorithms.training import fedprox as fedprox
