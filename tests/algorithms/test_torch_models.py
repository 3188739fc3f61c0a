"""Models of PyTorch modules, against training in PyTorch itself."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import sys
import warnings
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import tffc
from tests.algorithms import eager
from tffc.algorithms.work import batching, beginning, sequence_type, training_work

torch = pytest.importorskip("torch")

algorithms = tffc.algorithms
Model = algorithms.Model
SIZES = (7, 4, 1, 10)
DATA = eager.clients((3,), *SIZES)
IMAGES = eager.clients((1, 6, 6), *SIZES)
TEXTS = eager.clients((6,), *SIZES, words=True)
SGD = functools.partial(torch.optim.SGD, lr=0.1)
STEPS: dict[str, Any] = {"epochs": 2, "batch_size": 3}


def model_of(module: Any, data: list[eager.Client] = DATA, **settings: Any) -> Model:
    options: dict[str, Any] = {"loss": torch.nn.CrossEntropyLoss(), "metrics": ["accuracy"]}
    return Model.from_torch(module, data[0], **options | settings)


@functools.cache
def plain() -> tuple[Any, Model]:
    module = eager.network()
    return module, model_of(module)


def rounds(training: Any, data: Any = DATA, count: int = 3, **settings: Any) -> tffc.Run:
    return tffc.run(tffc.compile(training, "mapreduce"), data, count, **settings).finish()


CASES: dict[str, Any] = {
    "vectors": (eager.network, DATA),
    "images": (lambda: eager.images(torch.nn.GroupNorm(2, 4)), IMAGES),
    "texts": (eager.texts, TEXTS),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_rounds_are_those_of_pytorch(name: str) -> None:
    make, data = CASES[name]
    module = make()
    model = model_of(module, data)
    weights = eager.state_of(module)
    run = rounds(algorithms.federated_averaging(model, 0.1, **STEPS), data, 5)
    for _ in range(5):
        updates = eager.updates(module, weights, data, SGD, **STEPS)
        weights = eager.moved(weights, eager.mean(updates, data))
    eager.check(model.weights_of(run), weights)
    assert run.output["examples"] == sum(SIZES)


def test_a_round_reports_losses_and_metrics_before_each_step() -> None:
    module, model = plain()
    run = rounds(algorithms.federated_averaging(model, 0.1, batch_size=10), count=1)
    module.load_state_dict(eager.state_of(eager.network()))
    x, y = (torch.as_tensor(np.concatenate([c[name] for c in DATA])) for name in ("x", "y"))
    scores = module(x)
    loss = torch.nn.functional.cross_entropy(scores, y)
    np.testing.assert_allclose(run.output["loss"], loss.item(), rtol=1e-5)
    right = (scores.argmax(1) == y).double().mean()
    np.testing.assert_allclose(run.output["accuracy"], right, rtol=1e-5)


@pytest.mark.slow
def test_fedprox() -> None:
    module, model = plain()
    run = rounds(algorithms.fedprox(model, 0.1, 0.5, **STEPS), count=2)
    weights = eager.state_of(eager.network())
    for _ in range(2):
        updates = eager.updates(module, weights, DATA, SGD, mu=0.5, **STEPS)
        weights = eager.moved(weights, eager.mean(updates, DATA))
    eager.check(model.weights_of(run), weights)


@pytest.mark.slow
def test_adam_at_the_server_and_momentum_at_the_clients() -> None:
    module, model = plain()
    training = algorithms.federated_averaging(
        model,
        algorithms.SGD(0.1, momentum=0.5),
        server_optimizer=algorithms.Adam(0.1, beta_1=0.8, tau=0.01),
        **STEPS,
    )
    weights = eager.state_of(eager.network())
    m = OrderedDict((name, 0 * w) for name, w in weights.items())
    v = OrderedDict((name, 0 * w + 0.01**2) for name, w in weights.items())
    momentum = functools.partial(SGD, momentum=0.5)
    for _ in range(2):
        updates = eager.updates(module, weights, DATA, momentum, **STEPS)
        for name, delta in eager.mean(updates, DATA).items():
            m[name] = 0.8 * m[name] + 0.2 * delta
            v[name] = 0.99 * v[name] + 0.01 * delta**2
            weights[name] = weights[name] + 0.1 * m[name] / (v[name].sqrt() + 0.01)
    eager.check(model.weights_of(rounds(training, count=2)), weights, 1e-5)


@pytest.mark.parametrize("kind", ["Adam", "Yogi", "Adagrad"])
def test_adaptive_optimizers_compute_alike_in_every_framework(kind: str) -> None:
    optimizer = getattr(algorithms, kind)(0.1)
    random = np.random.default_rng(1)
    w, direction, v = random.normal(size=(3, 4)).astype(np.float32)
    memory = {"m": direction, "v": v**2}
    moved, after = optimizer.step(np, w, direction, memory)
    tensors = {name: torch.as_tensor(a) for name, a in memory.items()}
    found, remembered = optimizer.step(
        torch, torch.as_tensor(w), torch.as_tensor(direction), tensors
    )
    np.testing.assert_allclose(found, moved, rtol=1e-5)
    np.testing.assert_allclose(remembered["v"], after["v"], rtol=1e-5)


@pytest.mark.slow
def test_scaffold() -> None:
    module, model = plain()
    training = algorithms.scaffold(model, 0.1, len(DATA), server_learning_rate=0.7, **STEPS)
    weights = eager.state_of(eager.network())
    zero = OrderedDict((name, 0 * w) for name, w in weights.items())
    mean, own = zero, [zero] * len(DATA)
    run = tffc.run(training, DATA, 3).finish()
    for _ in range(3):
        moves, changes = [], []
        for client, control in zip(DATA, own, strict=True):
            correction = OrderedDict((name, mean[name] - control[name]) for name in mean)
            steps = eager.train(module, weights, client, SGD, correction=correction, **STEPS)
            after = eager.state_of(module)
            moves.append(OrderedDict((name, after[name] - w) for name, w in weights.items()))
            changes.append(
                OrderedDict((n, -mean[n] - moves[-1][n] / (steps * 0.1)) for n in weights)
            )
        own = [eager.moved(c, change) for c, change in zip(own, changes, strict=True)]
        weights = eager.moved(weights, eager.mean(moves, [{"y": np.zeros(1)}] * len(DATA)), 0.7)
        mean = eager.moved(mean, eager.mean(changes, [{"y": np.zeros(1)}] * len(DATA)))
    eager.check(model.weights_of(run), weights, 1e-5)


@pytest.mark.slow
def test_evaluations() -> None:
    module, model = plain()
    training = algorithms.federated_averaging(model, 0.1, batch_size=3)
    evaluation = algorithms.federated_evaluation(model, training, batch_size=4)
    run = tffc.run(training, DATA, 1, evaluate=evaluation, evaluate_data=DATA).finish()
    module.load_state_dict(model.weights_of(run))
    x, y = (torch.as_tensor(np.concatenate([c[name] for c in DATA])) for name in ("x", "y"))
    loss = torch.nn.functional.cross_entropy(module(x), y).item()
    assert run.last is not None
    np.testing.assert_allclose(run.last.evaluation["loss"], loss, rtol=1e-5)
    personal = algorithms.personalised_evaluation(model, training, 0.5, epochs=5, batch_size=3)
    output = next(tffc.run(personal, DATA, 1, state=run)).output
    assert output["before"]["examples"] == sum(size - size // 2 for size in SIZES)
    assert output["before"]["loss"] != output["after"]["loss"]
    bundle = tffc.compile(personal, "mapreduce")
    assert bundle.prove(personal).is_proved


FORMS = ("mapreduce", "distribute-aggregate", "mergeable")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_bundles_of_every_form_are_proved(form: str) -> None:
    _, model = plain()
    training = algorithms.federated_averaging(model, 0.1, batch_size=3)
    bundle = tffc.compile(training, form)
    assert bundle.form == form
    assert bundle.prove(training).is_proved


@pytest.mark.slow
def test_bundles_are_verified() -> None:
    _, model = plain()
    tffc.compile(algorithms.federated_averaging(model, 0.1, batch_size=3), "mapreduce").verify()


@pytest.mark.slow
def test_many_clients_in_one_call_compute_the_same() -> None:
    _, model = plain()
    training = algorithms.federated_averaging(model, 0.1, **STEPS)
    single, many = (rounds(training, batching=kind) for kind in ("off", 2))
    eager.check(model.weights_of(many), model.weights_of(single))


@pytest.mark.slow
def test_a_phone_computes_the_same(tmp_path: pathlib.Path) -> None:
    import tensorflow as tf

    module, model = plain()
    training = algorithms.federated_averaging(model, 0.1, batch_size=3)
    bundle = tffc.compile(training, "mapreduce")
    tffc.export(bundle, "tflite", tmp_path / "work")
    path = tmp_path / "work" / "work.tflite"
    # Without flex, and so without TensorFlow's kernels.
    plain_kernels = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    client, weights = DATA[0], model.first_weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lite = tf.lite.Interpreter(str(path), experimental_op_resolver_type=plain_kernels)
    work = lite.get_signature_runner("work")
    sent = {f"arg_1_0_{name.replace('.', '_')}": w for name, w in weights.items()}
    found = work(**{f"arg_0_{name}": column for name, column in client.items()}, **sent)
    (finished,) = tffc.run(bundle, [client], 1)
    for name, first in weights.items():
        update = found[f"result_0_0_0_{name.replace('.', '_')}"] / len(client["y"])
        np.testing.assert_allclose(first + update, finished.state["model"][name], 0, 1e-6)

    @tffc.torch.computation(model.weights, tffc.TensorType(np.float32, [2, 3]))
    def predict(weights: Any, x: Any) -> Any:
        return tffc.torch.call(module, weights, x)

    state = finished.state
    tffc.export(predict, "tflite", tmp_path / "model", state=state, part="model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lite = tf.lite.Interpreter(str(tmp_path / "model" / "model.tflite"))
    x = client["x"][:2]
    (scores,) = lite.get_signature_runner("model")(x=x).values()
    module.load_state_dict(model.weights_of(state))
    np.testing.assert_allclose(scores, module(torch.as_tensor(x)).detach(), 0, 1e-5)


def dropout() -> Any:
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))


def work_of(model: Model) -> Any:
    """Return what a client computes, as a computation of the weights and the examples."""
    train, begin = training_work(model, algorithms.SGD(0.1), 3), beginning(model)
    cut = tffc.tf_computation(batching(model, 3, trains=True), sequence_type(model))
    return tffc.federated_computation(
        lambda weights, examples: train(begin(weights), cut(examples)),
        [model.weights, sequence_type(model)],
    )


@pytest.mark.slow
def test_draws_follow_from_a_seed_of_the_client_and_the_number_of_the_step() -> None:
    module = dropout()
    assert module.training
    model = model_of(module, metrics=())
    assert module.training
    assert model.draws
    work, client = work_of(model), {name: rows[:7] for name, rows in DATA[0].items()}
    rows = [OrderedDict((name, client[name][i]) for name in ("x", "y")) for i in range(7)]
    seeds = []
    for _ in range(2):
        done = work(model.first_weights, rows)
        seeds.append(int(done["draws"]["seed"]))
        assert done["draws"]["steps"] == 3
        module = dropout()
        moving = SGD(module.parameters())
        for step in range(3):
            # The last batch is filled up with its last example, for which there are draws too.
            places = np.minimum(np.arange(3 * step, 3 * step + 3), 6)
            moving.zero_grad()
            with tffc.torch.draws(seeds[-1], step):
                scores = module(torch.as_tensor(client["x"][places]))
            count = min(3, 7 - 3 * step)
            y = torch.as_tensor(client["y"][places])
            torch.nn.functional.cross_entropy(scores[:count], y[:count]).backward()
            moving.step()
        for name, parameter in module.named_parameters():
            np.testing.assert_allclose(done["weights"][name], parameter.detach(), 0, 1e-6)
    assert seeds[0] != seeds[1]


@pytest.mark.slow
def test_an_evaluation_draws_nothing() -> None:
    model = model_of(dropout())
    training = algorithms.federated_averaging(model, 0.1)
    evaluation = algorithms.federated_evaluation(model, training)
    state = training.initialize()
    first, second = (next(tffc.run(evaluation, DATA, 1, state=state)).output for _ in range(2))
    assert first["loss"] == second["loss"]


BATCH_NORM: dict[str, Any] = {"drop_remainder": True}


@functools.cache
def normalized() -> tuple[Any, Model]:
    module = eager.images(torch.nn.BatchNorm2d(4))
    module.eval()
    return module, model_of(module, IMAGES, **BATCH_NORM)


@pytest.mark.slow
def test_running_means_are_averaged_over_full_batches() -> None:
    module, model = normalized()
    assert not module.training
    assert model.changed == ("1.running_mean", "1.running_var")
    weights = eager.state_of(eager.images(torch.nn.BatchNorm2d(4)))
    run = rounds(algorithms.federated_averaging(model, 0.1, **STEPS), IMAGES, 2)
    for _ in range(2):
        updates = eager.updates(module, weights, IMAGES, SGD, drop_last=True, **STEPS)
        update = eager.mean(updates, IMAGES, 3)
        # How many batches were seen is frozen: no client sends it.
        update["1.num_batches_tracked"] *= 0
        weights = eager.moved(weights, update)
    weights["1.num_batches_tracked"] = torch.tensor(0)
    eager.check(model.weights_of(run), weights)
    assert run.output["examples"] == sum(size // 3 * 3 for size in SIZES)


@pytest.mark.parametrize(
    "rule",
    ["local", *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("averaged", "frozen"))],
)
def test_buffers_follow_their_rules(rule: Any) -> None:
    module = eager.images(torch.nn.BatchNorm2d(4))
    model = model_of(module, IMAGES, buffers={"*running*": rule}, **BATCH_NORM)
    names = ["1.running_mean", "1.running_var"]
    sent = [name for name in model.weights if name in names]
    assert sent == (names if rule == "averaged" else [])
    assert list(model.local) == (names if rule == "local" else [])
    work = work_of(model)
    rows = [OrderedDict((name, IMAGES[0][name][i]) for name in ("x", "y")) for i in range(6)]
    after = work(model.first_weights, rows)["weights"]
    assert [name for name in after if name in names] == (names if rule != "frozen" else [])
    if rule != "frozen":
        weights = eager.state_of(module)
        eager.train(module, weights, IMAGES[0], SGD, epochs=1, batch_size=3, drop_last=True)
        for name in names:
            np.testing.assert_allclose(after[name], module.state_dict()[name], 0, 1e-6)


def test_weights_go_back_into_the_module() -> None:
    module = eager.images(torch.nn.BatchNorm2d(4))
    module[0].requires_grad_(False)
    model = model_of(module, IMAGES, buffers={"*running_mean": "local"}, **BATCH_NORM)
    assert list(model.weights) == ["1.weight", "1.bias", "5.weight", "5.bias", "1.running_var"]
    training = algorithms.federated_averaging(model, 0.1, batch_size=3)
    state = training.initialize()
    found = model.weights_of(state)
    eager.check(found, eager.state_of(module))
    other = eager.images(torch.nn.BatchNorm2d(4))
    other.load_state_dict(found, strict=True)
    found["5.bias"] += 1
    assert not torch.equal(found["5.bias"], model.weights_of(state)["5.bias"])


def test_tied_weights_go_back_under_all_their_names() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3))
    module[2].weight = module[0].weight
    model = model_of(module)
    assert list(model.weights) == ["0.weight", "0.bias", "2.bias"]
    found = model.restore(model.first_weights)
    assert list(found) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    module.load_state_dict(found, strict=True)


def test_modules_take_columns_by_position_and_by_keyword() -> None:
    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([2.0]))

        def forward(self, one: Any, *, other: Any) -> Any:
            return {"sum": self.scale * one - other}

    columns = {"a": np.float32, "b": np.float32, "label": np.float32}
    options: dict[str, Any] = {
        "y": "label",
        "loss": lambda outputs, labels: (outputs["sum"] - labels) ** 2,
        "metrics": {"off": lambda outputs, labels: (outputs["sum"] - labels).abs()},
    }
    model = Model.from_torch(Sum, columns, x={"other": "a", "one": "b"}, **options)
    assert model.metrics == ("off",)
    training = algorithms.federated_averaging(model, 0.01, batch_size=2)
    client = {"a": [1.0, 2.0], "b": [3.0, 4.0], "label": [0.0, 0.0]}
    data = [{name: np.array(rows, np.float32) for name, rows in client.items()}]
    output = rounds(training, data, 1).output
    np.testing.assert_allclose([output["loss"], output["off"]], [30.5, 5.5])


def test_several_numbers_for_an_example_count_as_their_mean() -> None:
    torch.manual_seed(1)
    module = torch.nn.Linear(3, 2)
    columns = {"x": (np.float32, [3]), "y": (np.float32, [2])}
    model = Model.from_torch(module, columns, loss=torch.nn.MSELoss())
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    data = [{"x": x, "y": np.zeros([2, 2], np.float32)}]
    run = rounds(algorithms.federated_averaging(model, 0.01), data, 1)
    loss = torch.nn.MSELoss()(module(torch.as_tensor(x)), torch.zeros(2, 2))
    np.testing.assert_allclose(run.output["loss"], loss.item(), rtol=1e-6)


def test_the_loss_of_the_user_stays_as_it_is() -> None:
    loss = torch.nn.CrossEntropyLoss()
    model_of(eager.network(), loss=loss)
    assert loss.reduction == "mean"


@pytest.mark.parametrize(
    ("last", "loss"),
    [((), "BCEWithLogitsLoss"), ((torch.nn.Sigmoid(),), "BCELoss")],
    ids=["logits", "probabilities"],
)
def test_accuracy_of_two_classes(last: Any, loss: str) -> None:
    first = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(first.weight)
    module = torch.nn.Sequential(first, *last, torch.nn.Flatten(0))
    columns = {"x": (np.float32, [1]), "y": np.float32}
    model = Model.from_torch(module, columns, loss=getattr(torch.nn, loss)(), metrics=["accuracy"])
    x = np.array([[0.2], [0.7], [-0.4], [-3.0]], np.float32)
    y = np.array([1, 0, 0, 1], np.float32)
    run = rounds(algorithms.federated_averaging(model, 0.01), [{"x": x, "y": y}], 1)
    assert run.output["accuracy"] == 0.5


@pytest.mark.slow
def test_importing_the_algorithms_loads_no_torch() -> None:
    code = "import sys, tffc; tffc.algorithms.Model.from_torch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def frozen_first(width: int) -> Any:
    """A network whose first layer, of `width` numbers for each input, is not trained."""
    torch.manual_seed(3)
    network = torch.nn.Sequential(
        torch.nn.Linear(3, width), torch.nn.ReLU(), torch.nn.Linear(width, 3)
    )
    network[0].requires_grad_(False)
    return network


@pytest.mark.slow
def test_frozen_weights_are_a_resource_of_the_bundle(tmp_path: pathlib.Path) -> None:
    module = frozen_first(400)
    model = model_of(module)
    training = algorithms.federated_averaging(model, 0.1, **STEPS)
    bundle = tffc.compile(training, "mapreduce")
    bundle.save(tmp_path / "bundle")
    sizes = sorted(path.stat().st_size for path in (tmp_path / "bundle" / "resources").iterdir())
    assert sizes == [400 * 4, 3 * 400 * 4]
    assert tffc.prove(bundle, training).is_proved
    run = tffc.run(bundle, DATA, 2).finish()
    assert [*run.state["model"]] == ["2.weight", "2.bias"]
    state = model.weights_of(run)
    assert torch.equal(state["0.weight"], module[0].weight)
    module.load_state_dict(state)
    expected = eager.state_of(frozen_first(400))
    assert not np.array_equal(state["2.weight"].numpy(), expected["2.weight"])


def test_few_frozen_numbers_are_constants() -> None:
    assert not model_of(frozen_first(4)).frozen
    assert [*model_of(frozen_first(400)).frozen] == ["0.weight", "0.bias"]
