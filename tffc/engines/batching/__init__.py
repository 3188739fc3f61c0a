"""Many clients in one call: their work and its accumulation, compiled by XLA for batches.

    planner         which clients are computed together, and whether that is worth it
    kernels         what is compiled for a batch
    retrace         a section computed again inside a graph that is made for a batch
    sequences       clients' sequences as index arithmetic, and their elements, taken from arrays
    program_graphs  the graphs of forms that have programs
    operations      the operations that can be in a batch, and what has to hold for them

A round's clients are read in groups of equal shapes.  A kernel takes a batch of clients and gives
one accumulator for all of them.  Two clients whose sequences differ in length share a kernel if
their last batches are of one size: how many whole batches there are before is an argument.

What cannot be in a batch is computed one client at a time, as ever: programs with operations that
draw, print, read files or take strings; datasets that are shuffled; clients whose data is bad; the
clients of a batch in which something fails, so that what fails is told of one client.  Integers are
what they are without batches; floats differ in their last digits, as they do between engines.

The judge knows nothing of it: the interpreter and validation run sections as they are.
"""
