"""The endpoint of a node or a server for those who operate it: metrics, health and readiness.

    python -m tffc.deploy.operations

serves `/metrics`, `/healthz` and `/readyz`, as the environment says:

    TFFC_METRICS            the folder of the counts, the same as for what counts
    TFFC_METRICS_ADDRESS    where to listen; 127.0.0.1:9464 by default
    TFFC_READY              what must be there before anybody counts on this machine, with spaces
                            between: files and folders that can be read, and HOST:PORT to connect to

    exposition     counts as OpenMetrics text, by prometheus_client
    endpoint       the server
"""
