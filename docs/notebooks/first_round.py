# %% [markdown]
# # A first round, from a data frame
#
# Ten stations have measured how warm it was at which height. You fit one line through all
# measurements, while each station keeps its own.

# %%
# %load_ext tffc
import collections

import numpy as np
import pandas as pd
import tensorflow as tf

import tffc
import tffc as tff

# %% [markdown]
# The data is one frame, and its column `station` says whose each row is.

# %%
generator = np.random.default_rng(7)
height = generator.uniform(0, 2, 300)
frame = pd.DataFrame(
    {
        "station": np.repeat([f"station_{number}" for number in range(10)], 30),
        "height": height,
        "degrees": 18 - 6.5 * height + generator.normal(0, 0.5, 300),
    }
)
frame.round(2).head(3)

# %% [markdown]
# A round is a function of the server's state and of what the clients have. Here the state is the
# line, and a client moves it some steps towards its own measurements. The server gets the mean of
# the moves, weighted with the numbers of measurements.

# %%
LINE = tff.TensorType(np.float32, [2])
MEASURED = tff.SequenceType(collections.OrderedDict(height=np.float32, degrees=np.float32))


@tff.tf_computation
def first_line():
    return tf.zeros([2])


def error_of(line, measured):
    return measured["degrees"] - line[0] - line[1] * measured["height"]


@tff.tf_computation(LINE, MEASURED)
def train(line, measured):
    def step(line, batch):
        error = error_of(line, batch)
        slope = tf.reduce_mean(error * batch["height"])
        return line + 0.2 * tf.stack([tf.reduce_mean(error), slope])

    def add_square(sums, one):
        return sums[0] + error_of(line, one) ** 2, sums[1] + 1.0

    moved = measured.repeat(5).batch(30).reduce(line, step) - line
    squares, count = measured.reduce((0.0, 0.0), add_square)
    return collections.OrderedDict(moved=moved, loss=squares / count, count=count)


@tff.tf_computation(LINE, LINE)
def add(line, moved):
    return line + moved


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_line, tff.SERVER)


@tff.federated_computation(tff.types.at_server(LINE), tff.types.at_clients(MEASURED))
def next_line(line, measured):
    work = tff.federated_map(train, (tff.federated_broadcast(line), measured))
    moved = tff.federated_mean(work.moved, weight=work.count)
    loss = tff.federated_mean(work.loss, weight=work.count)
    return tff.federated_map(add, (line, moved)), tff.federated_zip({"loss": loss})


fitting = tff.templates.IterativeProcess(initialize, next_line)

# %% [markdown]
# Compiling splits the round into components: what the server prepares, what each client does, how
# results are added up, and what the server makes of them.

# %%
bundle = tffc.compile(fitting, "mapreduce")
bundle

# %% [markdown]
# A run takes the clients of the frame. Its cell has a plot of what the rounds put out.

# %%
clients = tffc.data.clients(frame, by="station", cast="float32")
run = tffc.run(bundle, clients, 30)
run.finish()

# %%
losses = [loss for _, loss in run.metrics["loss"]]
print(f"loss {losses[0]:.1f}, then {losses[-1]:.2f}")
print("line", np.round(run.state, 1))

# %% [markdown]
# The line is close to the one that the data was made of: 18 degrees at the bottom, and 6.5 less for
# each step up. Next: [what leaves the clients](secure_usage.ipynb).
