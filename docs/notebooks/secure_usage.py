# %% [markdown]
# # Analytics with secure sums, and a verdict
#
# How many people use each feature? The server may know the sums, and nothing about a single person.

# %%
# %load_ext tffc
import collections
import pathlib

import numpy as np
import pandas as pd
import tensorflow as tf

import tffc
import tffc as tff

# %%
events = pd.DataFrame(
    {
        "person": ["ada", "ada", "ben", "ben", "cleo", "dan", "dan", "eve"],
        "feature": [0, 2, 0, 0, 3, 1, 2, 0],
        "seconds": [30, 45, 12, 8000, 60, 5, 90, 20],
    }
)
people = tffc.data.clients(events, by="person")
print(people.describe())

# %% [markdown]
# Each person's device counts its own events. Nobody counts for more than an hour, because
# `max_input` bounds what a secure sum takes.

# %%
FEATURES, MOST_SECONDS = 4, 3600
EVENTS = tff.SequenceType(collections.OrderedDict(feature=np.int32, seconds=np.int32))


@tff.tf_computation(EVENTS)
def count(events):
    def add(seconds, event):
        return seconds + event["seconds"] * tf.one_hot(event["feature"], FEATURES, dtype=tf.int32)

    seconds = events.reduce(tf.zeros([FEATURES], tf.int32), add)
    return collections.OrderedDict(
        users=tf.cast(seconds > 0, tf.int32), seconds=tf.minimum(seconds, MOST_SECONDS)
    )


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(EVENTS))
def usage(state, events):
    counts = tff.federated_map(count, events)
    users = tff.federated_secure_sum(counts.users, max_input=1)
    seconds = tff.federated_secure_sum(counts.seconds, max_input=MOST_SECONDS)
    return state, collections.OrderedDict(users=users, seconds=seconds)


# %% [markdown]
# An audit says what leaves a client, from the program alone. A policy says what may.

# %%
pathlib.Path("policy.yaml").write_text("operators: [federated_secure_sum]\nprotection: secure\n")
bundle = tffc.compile(usage, "mapreduce")
bundle.audit(policy="policy.yaml")

# %% [markdown]
# The verdict is about the program that the bundle contains, and a proof shows that its components
# compute that program.

# %%
bundle.prove()

# %% [markdown]
# The policy notices a sum that is not secure:


# %%
@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(EVENTS))
def open_usage(state, events):
    return state, tff.federated_sum(tff.federated_map(count, events).users)


tffc.audit(open_usage, policy="policy.yaml")

# %% [markdown]
# Now the round itself. Ben's 8000 seconds count as an hour.

# %%
run = tffc.run(bundle, people)
result = next(run).output
pd.DataFrame(result, index=["search", "maps", "mail", "music"])

# %% [markdown]
# A sum over few people reveals much about each; use many, or add noise. [Secure
# sums](../secure-sums.md) says how a network adds without seeing the numbers. Next: [averaging a
# Keras model](keras_model.ipynb).
