"""Running a bundle's rounds: the engines that carry one out, and what they have in common.

    process      what a bundle is to those who run it: types, first state, the steps of a round
    runtime      what runs the components of a round, and folds aggregations over clients
    sections     TensorFlow and XLA code as engines run it, and reductions, which make it faster
    engine       the interface of an engine
    rounds       rounds one after another on any engine, and evaluations of the state
    local        the engine in this process
    beam         the engine on Apache Beam, its transforms, what it ships and what comes back
    ray          the engine on Ray, and ray_worker, what its actors do
    shards       what any worker does for some clients: their work, folded, and merges
    shipment     what workers in other processes are sent
    encoding     values as bytes, without pickling
    table        the engines by name
    api          running bundles from Python

An engine decides where clients' work and sums run; everything that a result depends on, who is
sampled included, is shared.
"""
