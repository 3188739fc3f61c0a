"""Running the rounds of a bundle on a Flower federation, whose nodes hold the clients.

    apps         the functions that the modules of a Flower app call
    sides        the two sides of an app, which Flower starts
    grid         the federation reached through Flower's grid
    records      our messages as Flower's records
    pauses       how long to wait between polls
    supernode, superlink, superexec   Flower's node and server, which hold on a busy machine
    claims       the tasks of processes that are slow to begin
    owner        the end of processes with the one that owns them
    run          a command that runs an app, and says how the run ended
    asking       sending requests to nodes, and checking their untrusted replies
    exchanges    counting what a round exchanges with nodes
    engine       the server's part of a round: ask nodes, merge their replies in a fixed order
    rounds       one round after another, each repeated if too few nodes reply
    buffered     buffered rounds: contributions of nodes as they arrive
    tasks        messages to a node, independent of the process that handles them
    node         a node's part of a round: check, fold its clients, reply with one accumulator
    worker       a process that does a node's part and keeps TensorFlow loaded
    warm         the socket between a node and its worker
    masked_engine, masked_node, masked_steps   both parts if secure sums are masked
    secured      the secure sums in accumulators
    store        a node's copies of bundle files that are too large for an app
    settings     the configuration of the server and of nodes
    messages     requests and replies, and strict parsing of them
    bundle_file  the one file that holds a bundle in an app
    app_folder   the folder of an app, as `tffc export --to flower` writes it

Only sides, grid, records, claims, supernode, superlink and superexec import flwr.

A node is a silo with many clients, or a device with one.  It sends the accumulator of all its
clients, or an error code; never a path, a client's name, or a client's value.
"""
