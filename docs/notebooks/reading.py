# %% [markdown]
# # Reading a computation
#
# Types, forms, differences and the explorer: what tffc shows about a round before anybody runs it.

# %%
# %load_ext tffc
import numpy as np

import tffc
import tffc as tff

# %% [markdown]
# Every value has a type and, in a round, a placement. A computation shows its program.


# %%
@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(total, answers):
    return total, tff.federated_sum(answers)


print(count.type_signature)
count

# %% [markdown]
# The wrong placement is refused where it is written:

# %%
try:

    @tff.federated_computation(tff.types.at_server(np.int32))
    def wrong(total):
        return tff.federated_sum(total)

except TypeError as error:
    print(str(error).splitlines()[0])

# %% [markdown]
# A form is a split of the round into components. Two systems may need different forms of one
# program.

# %%
for form in ("mapreduce", "distribute-aggregate"):
    bundle = tffc.compile(count, form)
    print(form, len(bundle.components), "components")

# %% [markdown]
# `tffc.diff` compares programs by meaning, not by text. A maximum instead of a sum is a difference:


# %%
@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def largest(total, answers):
    return total, tff.federated_max(answers)


for difference in tffc.diff(count, largest):
    print(difference.component, difference.change)
    print(*difference.lines, sep="\n")

# %%
print("the same program:", tffc.diff(count, count) == [])

# %% [markdown]
# The explorer shows the stages of a round, what moves between them, and the audit. It is one page
# without a network.

# %%
tffc.explore(count)

# %% [markdown]
# [The language](../language.md) has all types and operators. Next: [going on](going_on.ipynb).
