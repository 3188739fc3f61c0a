"""Whether a function does the same each time that it is traced.

A trace is what a function did once.  What it took from outside, such as a number that Python drew
or a counter, would be a constant of the program.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.frontend.torch.releases import load_torch
from tffc.support.errors import LanguageValueError, Span


def generators() -> dict[str, Any]:
    """Return the states of the generators of this process by their names."""
    with _no_modes():
        return {
            "Python's random": random.getstate(),
            "numpy.random": _comparable(np.random.get_state()),
            "PyTorch's generator": load_torch().get_rng_state().numpy().tobytes(),
        }


def _no_modes() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which PyTorch computes with values, also during a trace."""
    return importlib.import_module("torch.utils._python_dispatch")._disable_current_modes()


def check_generators(before: Mapping[str, Any], span: Span | None) -> None:
    """Check that generators are in the states from before a trace; errors point at `span`.

    Raises:
      LanguageValueError: they are not.
    """
    for name, state in generators().items():
        if state != before[name]:
            raise LanguageValueError(
                "E580",
                f"a PyTorch computation draws from {name} while it is traced",
                notes=("every run of the program would have the same numbers",),
                help="draw with PyTorch, within `with tff.torch.draws(seed, step):`",
                span=span,
            )


def _comparable(state: Any) -> tuple[Any, ...]:
    return tuple(part.tolist() if isinstance(part, np.ndarray) else part for part in state)


def check_same(graphs: tuple[Any, Any], structures: Sequence[Any], span: Span | None) -> None:
    """Check that a function, run twice, gave the same graph and structure; errors point at `span`.

    Raises:
      LanguageValueError: it did something else the second time.
    """
    note = _left_behind(graphs[1]) or _first_difference(graphs, structures)
    if note:
        raise LanguageValueError(
            "E588",
            "a PyTorch computation is another program each time it is traced",
            notes=(note,),
            help="it depends on what changes outside of it, such as a counter, a cache, the time "
            "or a generator of numbers: make that an argument",
            span=span,
        )


def _left_behind(graph: Any) -> str:
    """Return a text of a tensor without values among the constants of a graph, if there is one."""
    fake = importlib.import_module("torch._subclasses.fake_tensor").FakeTensor
    names = [node.target for node in graph.graph.nodes if node.op == "get_attr"]
    left = [value for name in names if isinstance(value := getattr(graph, name), fake)]
    return f"it uses a {short_text(left[0])} that another trace left behind" if left else ""


def _first_difference(graphs: tuple[Any, Any], structures: Sequence[Any]) -> str:
    for one, other in itertools.zip_longest(*map(_shown, graphs)):
        if one != other:
            return f"it has {one or 'nothing'} first, and {other or 'nothing'} then"
    one, other = structures
    return "" if one == other else f"it returns {one} first, and {other} then"


def _shown(graph: Any) -> Iterator[str]:
    """Yield the operations of a graph as text, with the values of its constants."""
    torch = load_torch()
    for node in graph.graph.nodes:
        if node.op == "get_attr" and isinstance(value := getattr(graph, node.target), torch.Tensor):
            yield f"a constant {_values(value)}"
        else:
            yield f"{node.target}({', '.join(map(str, (*node.args, *node.kwargs.items())))})"


def _values(tensor: Any) -> str:
    """Return a text of a tensor that other tensors do not have."""
    with _no_modes():
        plain = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
        content = plain.view(load_torch().uint8).numpy().tobytes() if plain.numel() else b""
    return f"{short_text(tensor)} {hashlib.sha256(content).hexdigest()[:16]}"


def short_text(tensor: Any) -> str:
    """Return a text of the type and the shape of a tensor."""
    return f"tensor of {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
