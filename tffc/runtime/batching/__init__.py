"""Many clients in one call: their work and its accumulation, compiled by XLA for batches.

    choices             compilers and precisions by name
    limits              from when on, and up to which size, batches pay off
    planner             which clients are computed together, and whether that is worth it
    shares              how the parts of a round are shared between workers
    keys                which clients can share a kernel
    pieces              the units of a round's work, and the arrays of a batch
    kernels             what the kernels of all compilers have in common
    compilers           which of them compiles, the one place where that is chosen
    pjrt_kernels        kernels that JAX traces, and PJRT compiles and runs
    tensorflow_kernels  kernels of TensorFlow's XLA
    kernel_cache        kernels kept between runs
    program_graphs      graphs for forms whose components are programs

A round's clients are read in groups of equal shapes.  A kernel takes a batch of clients and returns
one accumulator for all of them.  Clients whose sequences differ in length share a kernel: the
number of whole batches is an argument, and for PJRT the size of the last batch is, too.

These are still computed one client at a time: programs with operations that print, read files, take
strings or draw under a seed of their own; shuffled datasets; clients with bad data; and the clients
of a batch in which something fails, so that the error names one client.  Integers are the same as
without batches; floats may differ in their last digits, as they may between engines.

Validation does not use batches: it and the interpreter run sections as they are.
"""
