"""What tffc uses of Ray, which is imported only when an engine on it starts."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast


class Ref(Protocol):
    """A reference to an object in Ray's store, or to the result of a call."""

    def hex(self) -> str:
        """Return its unique name."""
        ...


class Method(Protocol):
    """A method of an actor."""

    def remote(self, *arguments: object) -> Ref:
        """Call it there; return the reference of its result."""
        ...


class Actor(Protocol):
    """A `Worker` in another process."""

    ping: Method
    run_shards: Method
    merge: Method
    conclude: Method
    join: Method
    contribute: Method


class ActorClass(Protocol):
    """A class whose instances are actors."""

    def remote(self, *arguments: object) -> Actor:
        """Return a new actor."""
        ...


class TaskError(Exception):
    """The type of Ray's error for a call that failed; `cause` is the error there."""

    cause: BaseException


class Errors(Protocol):
    """The module `ray.exceptions`."""

    RayError: type[Exception]
    RayTaskError: type[TaskError]


class Ray(Protocol):
    """The module `ray`."""

    exceptions: Errors

    def init(self, **options: object) -> object:
        """Start Ray, or join it at an address."""
        ...

    def is_initialized(self) -> bool:
        """Return whether this process has started or joined Ray."""
        ...

    def cluster_resources(self) -> Mapping[str, float]:
        """Return the resources of all machines."""
        ...

    def put(self, value: object) -> Ref:
        """Store an object."""
        ...

    def get(self, ref: Ref) -> bytes:
        """Return an object of the store, or the result of a call."""
        ...

    def wait(
        self, refs: list[Ref], *, num_returns: int, timeout: float
    ) -> tuple[Sequence[Ref], Sequence[Ref]]:
        """Wait for results; return the references of those that are there, and the others."""
        ...

    def remote(self, **options: object) -> Callable[[type], ActorClass]:
        """Return a function that makes classes of actors."""
        ...

    def kill(self, actor: Actor) -> None:
        """End an actor."""
        ...


def load_ray() -> Ray:
    """Return the module `ray`, with usage reports off unless the environment turns them on."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Without this, Ray warns at each start about a future change of behaviour.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return imported_ray()


def imported_ray() -> Ray:
    """Return the module `ray`, as the environment has it."""
    return cast("Ray", importlib.import_module("ray"))
