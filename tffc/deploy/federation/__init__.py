"""Rounds on a federation, whose nodes hold the clients; it may be one of Flower or of NVFlare.

    asking       sending requests to nodes, and checking their untrusted replies
    exchanges    counting what a round exchanges with nodes
    engine       the server's part of a round: ask nodes, merge their replies in a fixed order
    rounds       one round after another, each repeated if too few nodes reply
    buffered     buffered rounds: contributions of nodes as they arrive
    serving      the rounds that a server is configured for, in the folder of a run
    tasks        messages to a node, independent of the process that handles them
    node         a node's part of a round: check, fold its clients, reply with one accumulator
    masked_engine, masked_node, masked_steps   both parts if secure sums are masked
    secured      the secure sums in accumulators
    past         what a node remembers of masked sums
    client_states   the states of a node's clients, and the server's receipts of them
    store        a node's copies of bundle files that are sent apart
    settings     the configuration of the server and of nodes
    messages     requests and replies, and strict parsing of them
    pauses       how long to wait between polls

A node is a silo with many clients, or a device with one.  It sends the accumulator of all its
clients, or an error code; never a path, a client's name, or a client's value.
"""
