"""The module `tff.jax`."""

from tffc.frontend.computation import jax_computation as computation

__all__ = ["computation"]
