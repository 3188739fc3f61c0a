"""Rounds of a bundle on a Flower federation, whose nodes hold the clients.

    apps         what the modules of a Flower app call
    sides        the two sides of an app: what `flwr run` starts
    grid         the federation that Flower's grid reaches
    records      what is sent, as Flower's records
    pauses       how long to wait for what has not come
    supernode, superexec   Flower's node without its pauses; these five alone import flwr
    asking       asking nodes, and taking what they answer without trust
    engine       the server's part of a round: ask nodes, merge what they answer in their order
    rounds       one round after another, each repeated where too few nodes answer
    tasks        messages to a node, for what does them
    node         a node's part of a round: check, fold its clients, answer one accumulator
    worker       a process that does a node's part and keeps TensorFlow loaded
    warm         the socket to it
    masked_engine, masked_node, masked_steps   both parts where secure sums are masked
    secured      the secure sums in accumulators
    store        files of bundles too large for an app, at a node
    settings     what the operators of the server and of a node configure
    messages     requests and replies, read strictly
    app_bundle   the bundle of an app
    bundle_file  the one file that holds a bundle in an app
    app_folder   the folder of an app, as `tffc export --to flower` writes it

A node is a silo with many clients, or a device with one.  It sends the accumulator of all its
clients, or the code of an error; never a path, a name of a client, or a value of one.
"""
