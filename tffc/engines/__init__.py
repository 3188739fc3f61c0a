"""Running a bundle's rounds: the engines, and what they have in common.

    process      a bundle ready to run: types, first state, the steps of a round
    runtime      runs the components of a round, and folds aggregations over clients
    sections     TensorFlow and XLA code as engines run it, and reductions, which make it faster
    engine       the interface of an engine
    rounds       rounds one after another on any engine, and evaluations of the state
    local        the engine in this process
    beam         the engine on Apache Beam, with its transforms, shipments and results
    ray          the engine on Ray, and ray_worker, the code of its actors
    shards       a worker's part: the work of some clients, folded, and merges
    shipment     what workers in other processes are sent
    encoding     values as bytes, without pickling
    table        the engines by name
    api          running bundles from Python

An engine decides where clients' work and sums run; everything that a result depends on, including
who is sampled, is shared code.
"""
