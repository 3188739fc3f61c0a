# %% [markdown]
# # Going on: resume, change, evaluate
#
# Real runs stop and go on, change their parameters, and are measured on other data.

# %%
# %load_ext tffc
import collections

import numpy as np
import pandas as pd
import tensorflow as tf

import tffc
import tffc as tff

# %% [markdown]
# One table becomes clients in different ways: as many rows for each, or of each label an own share.

# %%
generator = np.random.default_rng(5)
label = generator.integers(0, 2, 400)
points = pd.DataFrame(
    {
        "x": (label * 2.0 - 1 + generator.normal(0, 1, 400)).astype(np.float32),
        "label": label.astype(np.float32),
    }
)
even = tffc.data.split_iid(points[:300], 10)
uneven = tffc.data.split_dirichlet(points[:300], 10, label="label", alpha=0.3)
held_out = tffc.data.split_iid(points[300:], 5)
for split in (even, uneven):
    print(*(line for line in str(split.describe()).splitlines() if "rows a client" in line))

# %% [markdown]
# A program is a function of its parameters where a function makes it:

# %%
MODEL = tff.TensorType(np.float32, [2])
POINTS = tff.SequenceType(collections.OrderedDict(x=np.float32, label=np.float32))


def score(model, points):
    return model[0] + model[1] * points["x"]


def mean_loss(model, points):
    def add(sums, point):
        loss = tf.nn.sigmoid_cross_entropy_with_logits(point["label"], score(model, point))
        return sums[0] + loss, sums[1] + 1.0

    total, count = points.reduce((0.0, 0.0), add)
    return total / count


@tff.tf_computation
def first_model():
    return tf.zeros([2])


def make_training(rate):
    @tff.tf_computation(MODEL, POINTS)
    def train(model, points):
        def step(model, batch):
            error = batch["label"] - tf.math.sigmoid(score(model, batch))
            slope = tf.reduce_mean(error * batch["x"])
            return model + rate * tf.stack([tf.reduce_mean(error), slope])

        trained = points.batch(10).reduce(model, step)
        return collections.OrderedDict(model=trained, loss=mean_loss(model, points))

    @tff.federated_computation
    def initialize():
        return tff.federated_eval(first_model, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(POINTS))
    def next_model(model, points):
        work = tff.federated_map(train, (tff.federated_broadcast(model), points))
        loss = tff.federated_zip({"loss": tff.federated_mean(work.loss)})
        return tff.federated_mean(work.model), loss

    return tff.templates.IterativeProcess(initialize, next_model)


# %% [markdown]
# An evaluation is a round too: it measures, and gives the state back.


# %%
@tff.tf_computation(MODEL, POINTS)
def measure(model, points):
    return mean_loss(model, points)


@tff.federated_computation(tff.types.at_server(MODEL), tff.types.at_clients(POINTS))
def evaluation(model, points):
    losses = tff.federated_map(measure, (tff.federated_broadcast(model), points))
    return model, tff.federated_zip({"loss": tff.federated_mean(losses)})


# %% [markdown]
# A folder keeps the run. Three rounds today, and with `resume` up to ten in total tomorrow:

# %%
training = make_training(rate=0.5)
measured = {"evaluate": evaluation, "evaluate_data": held_out}
begun = tffc.run(training, even, 3, clients_per_round=5, out="run", **measured).finish()
resumed = tffc.run(
    training, even, 10, clients_per_round=5, out="run", resume=True, **measured
).finish()
print("rounds", [row.round for row in begun.rows], "and", [row.round for row in resumed.rows])

# %%
loss, held_out_loss = (resumed.metrics[name][-1][1] for name in ("loss", "evaluation.loss"))
print(f"loss {loss:.2f}, on held-out data {held_out_loss:.2f}")

# %% [markdown]
# Another learning rate is another program, which can go on from the state. `after_round` counts on,
# so that other clients are drawn than in the first rounds.

# %%
slower = tffc.run(
    make_training(rate=0.1), uneven, 5, state=resumed.state, after_round=10, clients_per_round=5
)
slower.finish()

# %%
print("rounds", [row.round for row in slower.rows])

# %% [markdown]
# The folder has the report of all its rounds; `run.report()` shows it in a cell, and `tffc report
# run` writes it. [Running rounds](../running.md) says more, also how to watch runs in MLflow.
