"""How many examples the properties are tried on: few by default, thousands on request."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("quick", max_examples=40, deadline=None, suppress_health_check=SLOW)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=3000)
settings.load_profile("quick")
