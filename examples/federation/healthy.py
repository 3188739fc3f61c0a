"""Ask Flower's health server, as Compose's health checks do: `python healthy.py HOST:PORT`.

Kubernetes asks by itself.
"""

import sys

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

with grpc.insecure_channel(sys.argv[1]) as channel:
    health = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(  # pyright: ignore[reportAttributeAccessIssue]  # set when it is made
        health_pb2.HealthCheckRequest(), timeout=3
    )
sys.exit(answer.status != health_pb2.HealthCheckResponse.SERVING)
