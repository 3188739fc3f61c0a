"""The names of the data that flows between the calls of a round."""

from __future__ import annotations

from collections.abc import Mapping

from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.leaves import below, gathered
from tffc.assurance.audit.programs import Kind, RoundFlows, leaf_paths
from tffc.backends.forms.stages import Half, StagedRound
from tffc.explorer.wiring import Part
from tffc.language.type_parts import local_type
from tffc.language.types import StructType, Type


class Flowing:
    """Names what a part of a value may depend on, as the audit does.

    For values that depend on clients' data these are its elements, and those of which only the
    number or the shape matters; else channels, and else parts of the server's state.
    """

    def __init__(
        self, program: StagedRound, flows: RoundFlows, audited: Audit, channels: Mapping[str, str]
    ) -> None:
        self._round = program
        self._flows = flows
        self._channels = channels
        parameter = program.type.parameter
        assert isinstance(parameter, StructType)
        self._labels = (parameter.names[0] or "state", parameter.names[1] or "data")
        self._data = audited.data
        self._state = below(leaf_paths(local_type(parameter[0]), self._labels[0]))

    def of(self, part: Part) -> list[str]:
        """Return the names of what a part may depend on; none for a constant."""
        if isinstance(part.source, Half):
            label = self._labels[part.source.value == "data"] + part.path
            if part.source.value == "state":
                return [label]
            return [name for name in self._data if _is_below(name, label)] or [label]
        call = self._round.calls[part.source].call
        return self._named(self._total(part.source, local_type(call.type), part.path))

    def _total(self, call: str, type: Type, path: str) -> int:
        """Return the sources of the leaves of a call's result that are below a path."""
        total = 0
        for name, leaf in zip(leaf_paths(type, ""), self._flows.calls[call], strict=True):
            if _is_below(name, path):
                total |= leaf
        return total

    def _named(self, total: int) -> list[str]:
        sources = self._flows.sources
        data = [source.name for source in sources.of(total, Kind.DATA)]
        counts = [f"how many {source.name}" for source in sources.of(total, Kind.COUNT)]
        shapes = [
            source.name for source in sources.of(total, Kind.SHAPE) if source.name not in data
        ]
        own = [*data, *counts, *(f"shape of {name}" for name in shapes)]
        if own:
            return own
        channels = [self._channels[source.name] for source in sources.of(total, Kind.CHANNEL)]
        state = [source.name for source in sources.of(total, Kind.STATE)]
        return channels or [name for name, _ in gathered(state, self._state)]


def _is_below(name: str, path: str) -> bool:
    """Return whether a path is another one or leads on from it."""
    return name == path or (name.startswith(path) and (not path or name[len(path)] in ".["))
