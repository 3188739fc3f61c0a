"""A Flower federation as one of `tffc.deploy.federation`, and the apps that run on it.

    apps         the functions that the modules of a Flower app call
    sides        the two sides of an app, which Flower starts
    grid         the federation reached through Flower's grid
    records      our messages as Flower's records
    log          Flower's log
    pauses       how long to wait between polls
    supernode, superlink, superexec   Flower's node and server, which hold on a busy machine
    claims       the tasks of processes that are slow to begin
    owner        the end of processes with the one that owns them
    run          a command that runs an app, and says how the run ended
    worker       a process that does a node's part and keeps TensorFlow loaded
    warm         the socket between a node and its worker
    bundle_file  the one file that holds a bundle in an app
    app_folder   the folder of an app, as `tffc export --to flower` writes it

Only sides, grid, records, claims, supernode, superlink and superexec import flwr.
"""
