"""Running a bundle's rounds: what a round consists of, and the engines that carry one out.

    process      what a bundle is to those who run it: types, first state, the steps of a round
    steps        one interface to the parts of all three forms
    map_reduce, distribute_aggregate, broadcast     the parts of each form behind it
    sections     TensorFlow and XLA code as engines run it, and reductions, which make it faster
    engine       the interface of an engine, and rounds one after another on any
    local        the engine in this process
    beam         the engine on Apache Beam, its transforms, what it ships and what comes back
    encoding     values as bytes, without pickling
    api          choosing an engine, and running bundles from Python

An engine decides where clients' work and sums run; everything that a result depends on, who is
sampled included, is shared.
"""
