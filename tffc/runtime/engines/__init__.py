"""Running a bundle's rounds: the engines, and the code that they share.

    process      a bundle ready to run: types, initial state, the steps of a round
    runtime      runs the components of a round, and folds aggregations over clients
    sections     TensorFlow and XLA code as engines run it; reductions makes it faster
    engine       the interface of an engine
    rounds       rounds one after another on any engine, and evaluations of the state
    local        the engine in this process
    beam         the engine on Apache Beam, with its transforms, shipments and results
    ray          the engine on Ray, and ray_worker, the code of its actors
    shards       a worker's part: computing some clients, folding their updates, and merging
    shipment     what is sent to workers in other processes
    encoding     values as bytes, without pickling
    table        the engines by name
    api          running bundles from Python

An engine decides where clients' work and sums run; everything that a result depends on, including
who is sampled, is shared code.
"""
