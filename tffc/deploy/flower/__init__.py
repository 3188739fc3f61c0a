"""A Flower federation as one of `tffc.deploy.federation`, and the apps that run on it.

    apps         the functions that the modules of a Flower app call
    sides        the two sides of an app, which `flwr run` starts
    grid         the federation reached through Flower's grid
    records      our messages as Flower's records
    pauses       shorter pauses between Flower's polls
    supernode, superexec   Flower's node with shorter pauses
    worker       a process that does a node's part and keeps TensorFlow loaded
    warm         the socket between a node and its worker
    bundle_file  the one file that holds a bundle in an app
    app_folder   the folder of an app, as `tffc export --to flower` writes it

Only sides, grid, records, supernode and superexec import flwr.
"""
