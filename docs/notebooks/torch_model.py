# %% [markdown]
# # Averaging a PyTorch module
#
# Clients train a small network of PyTorch on their own images, and the server averages how the
# weights move.

# %%
# %load_ext tffc
import numpy as np
import torch
from safetensors.torch import load_file
from sklearn.datasets import load_digits

import tffc

# %% [markdown]
# The images are scikit-learn's digits, 8 by 8 pixels each. Forty clients get as many of them.

# %%
digits = load_digits()
images = {
    "pixels": (digits.data / 16).astype(np.float32),
    "label": digits.target.astype(np.int64),
}
rows = np.arange(len(digits.target))
train_images = {name: values[rows % 5 > 0] for name, values in images.items()}
test_images = {name: values[rows % 5 == 0] for name, values in images.items()}
clients = tffc.data.split_iid(train_images, 40, seed=1)
print(clients.describe())

# %% [markdown]
# The network is any module. Dropout is on in training and off in evaluation.

# %%
torch.manual_seed(1)
network = torch.nn.Sequential(
    torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 10)
)
tffc.torch.weights(network)

# %%
model = tffc.algorithms.Model.from_torch(
    network,
    {"pixels": (np.float32, [64]), "label": np.int64},
    x="pixels",
    y="label",
    loss=torch.nn.CrossEntropyLoss(),
    metrics=["accuracy"],
)
training = tffc.algorithms.federated_averaging(model, 0.2, epochs=3, batch_size=10)

# %% [markdown]
# The step was traced into StableHLO. `verify` runs it, and the same step in PyTorch itself, on
# arguments of many kinds, and compares the results.

# %%
tffc.verify(training)

# %% [markdown]
# Each round takes twenty of the clients.

# %%
run = tffc.run(training, clients, 15, clients_per_round=20, out="run")
run.finish()

# %% [markdown]
# The trained weights go back into the module, with all that its `state_dict` has.

# %%
network.load_state_dict(model.weights_of(run))
guesses = network.eval()(torch.tensor(test_images["pixels"])).argmax(1).numpy()
right = np.mean(guesses == test_images["label"])
print("more than 80 % of the test images are right:", right > 0.8)

# %% [markdown]
# They also go to a file of safetensors, by which others load the module.

# %%
tffc.export(run, "safetensors", "digits.safetensors", part="model")
other = torch.nn.Sequential(
    torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 10)
)
other.load_state_dict(load_file("digits.safetensors"))
print("the same:", torch.equal(other[0].weight, network[0].weight))

# %% [markdown]
# [PyTorch](../pytorch.md) says more about modules and steps by hand. Next: [reading a
# computation](reading.ipynb).
