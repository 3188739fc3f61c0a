# %% [markdown]
# # Averaging a Keras 3 model
#
# Clients train a small Keras model on their own images, and the server averages how the weights
# move.

# %%
# %load_ext tffc
import collections

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import tffc
import tffc as tff

# %% [markdown]
# The images are scikit-learn's digits, 8 by 8 pixels each. Forty clients get as many of them.

# %%
digits = load_digits()
images = {
    "pixels": (digits.data / 16).astype(np.float32),
    "label": digits.target.astype(np.int32),
}
rows = np.arange(len(digits.target))
train_images = {name: values[rows % 5 > 0] for name, values in images.items()}
test_images = {name: values[rows % 5 == 0] for name, values in images.items()}
clients = tffc.data.split_iid(train_images, 40, seed=1)
print(clients.describe())

# %% [markdown]
# The model is as any Keras model. What travels is the list of its weights.


# %%
def make_model():
    return keras.Sequential(
        [
            keras.Input([64]),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


WEIGHTS = [tff.TensorType(np.float32, weight.shape) for weight in make_model().weights]
IMAGES = tff.SequenceType(
    collections.OrderedDict(pixels=tff.TensorType(np.float32, [64]), label=np.int32)
)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tff.tf_computation
def first_weights():
    keras.utils.set_random_seed(3)
    return [tf.convert_to_tensor(weight) for weight in make_model().weights]


# %% [markdown]
# Models and optimizers are made outside of the `tf.function`, which has the loop.


# %%
@tff.tf_computation(WEIGHTS, IMAGES)
def train(weights, images):
    model, optimizer = make_model(), keras.optimizers.SGD(0.2)
    optimizer.build(model.trainable_variables)

    @tf.function
    def descend(weights, batches):
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)
        last = 0.0
        for batch in batches:
            with tf.GradientTape() as tape:
                loss = loss_of(batch["label"], model(batch["pixels"], training=True))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
            last = loss
        return [new - old for new, old in zip(model.weights, weights, strict=True)], last

    moved, loss = descend(weights, images.repeat(3).batch(10))
    return collections.OrderedDict(moved=moved, loss=loss)


@tff.tf_computation(WEIGHTS, WEIGHTS)
def add(weights, moved):
    return [weight + move for weight, move in zip(weights, moved, strict=True)]


@tff.federated_computation
def initialize():
    return tff.federated_eval(first_weights, tff.SERVER)


@tff.federated_computation(tff.types.at_server(WEIGHTS), tff.types.at_clients(IMAGES))
def next_weights(weights, images):
    work = tff.federated_map(train, (tff.federated_broadcast(weights), images))
    moved = tff.federated_mean(work.moved)
    loss = tff.federated_zip({"loss": tff.federated_mean(work.loss)})
    return tff.federated_map(add, (weights, moved)), loss


training = tff.templates.IterativeProcess(initialize, next_weights)

# %% [markdown]
# Each round takes twenty of the clients.

# %%
run = tffc.run(training, clients, 15, clients_per_round=20)
run.finish()

# %% [markdown]
# The trained state is the list of weights, so it goes back into a model of Keras.

# %%
model = make_model()
model.set_weights(run.state)
guesses = np.argmax(model.predict(test_images["pixels"], verbose=0), axis=1)
right = np.mean(guesses == test_images["label"])
print("more than 80 % of the test images are right:", right > 0.8)

# %% [markdown]
# [Keras](../keras.md) says more about models, also how to export them. Next: [reading a
# computation](reading.ipynb).
