"""Many clients in one call: their work and its accumulation, compiled by XLA for batches.

    limits          from when on, and up to which size, batches pay off
    planner         which clients are computed together, and whether that is worth it
    kernels         the functions compiled for batches
    retrace         a section traced again inside the graph of a kernel
    sequences       reading clients' sequences from arrays by index arithmetic
    program_graphs  graphs for forms whose components are programs
    operations      the operations allowed in a batch, and the checks of their inputs

A round's clients are read in groups of equal shapes.  A kernel takes a batch of clients and returns
one accumulator for all of them.  Clients whose sequences differ in length share a kernel if their
last batches of elements have the same size: the number of whole batches is an argument.

These are still computed one client at a time: programs with operations that draw, print, read files
or take strings; shuffled datasets; clients with bad data; and the clients of a batch in which
something fails, so that the error names one client.  Integers are the same as without batches;
floats may differ in their last digits, as they may between engines.

Validation does not use batches: it and the interpreter run sections as they are.
"""
