"""Attacks that tell two neighbouring sets of clients apart by what a round releases.

The graphs of the round's components run many times in a batch.  One half of the releases chooses
the attack; the other half tells how often it is right, which bounds ε from below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import beta

import tffc as tff
from tffc.api.programs import round_of
from tffc.backends.compiler import normalized
from tffc.backends.forms.kinds import form_for, load_form
from tffc.backends.forms.stages import assign_stages
from tffc.language.nodes import Compiled
from tffc.runtime.frameworks.tensorflow.graph_content import read_graph
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

DOUBT = 1e-4
"""The probability that a lower bound is wrong."""

TAILS = np.geomspace(1e-5, 1e-3, 40)
"""Shares of releases beyond the thresholds that are tried, besides those in the middle."""

Data = Sequence[Sequence[Any]]
"""The leaves of each client's data."""


def function_of(section: Compiled) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that runs a section's own graph on the leaves of its parameter."""
    content = read_graph(section)
    graph = tf.compat.v1.GraphDef.FromString(content.graph.SerializeToString())
    assert not content.initialize_op

    def run(values: Sequence[Any]) -> list[Any]:
        feeds = {name: v for (name, _), v in zip(content.parameter, values, strict=True)}
        results = [name for name, _ in content.result]
        return list(tf.graph_util.import_graph_def(graph, feeds, results))

    return run


class ReleasedRound:
    """A round of a process whose state has no dictionary, from clients' data to its new state and
    its output."""

    def __init__(self, process: Any) -> None:
        program = round_of(process)
        staged = assign_stages(normalized(program.computation, form_for(program.computation)))
        form: Any = load_form("mapreduce").build(staged)
        names = ("prepare", "work", "zero", "accumulate", "report", "update")
        self._components = {name: getattr(form, name) for name in names}
        assert not form.summed
        self._state = [np.asarray(leaf) for leaf in tff.structure.flatten(process.initialize())]

    def _run(self, data: Data) -> Any:
        run = {name: function_of(component) for name, component in self._components.items()}
        state = [tf.constant(leaf) for leaf in self._state]
        sent = run["prepare"](state)
        total = run["zero"]([])
        for client in data:
            values = [tf.convert_to_tensor(leaf) for leaf in client]
            total = run["accumulate"]([*total, *run["work"]([*values, *sent])])
        released = run["update"]([*state, *run["report"](total)])
        return tf.concat([tf.reshape(tf.cast(r, tf.float64), [-1]) for r in released], 0)

    def releases(self, data: Data, count: int) -> Any:
        """Return what as many rounds release, each from its first state."""

        @tf.function
        def all_rounds() -> Any:
            return tf.vectorized_map(lambda _: self._run(data), tf.range(count))

        # A logarithm of zero is as good as a very large number.
        return np.clip(all_rounds().numpy(), -1e6, 1e6)


def statistics(first: Any, second: Any) -> Iterator[Callable[[Any], Any]]:
    """Yield numbers of a release by which two kinds of them may be told apart, given some of each:
    the best one for normal noise, and the best one for Laplace's."""
    means = [releases.mean(0) for releases in (first, second)]
    spread = np.cov(first.T).reshape([first.shape[1]] * 2) + 1e-12 * np.eye(first.shape[1])
    direction = np.linalg.solve(spread, means[1] - means[0])
    yield lambda releases: releases @ direction
    middles = [np.median(releases, 0) for releases in (first, second)]
    scale = np.mean(np.abs(first - middles[0]), 0) + 1e-12
    yield lambda releases: (
        (np.abs(releases - middles[0]) - np.abs(releases - middles[1])) / scale
    ).sum(1)


def least_epsilon(hits: Any, misses: Any, count: int, delta: float) -> Any:
    """Return a lower bound of ε for an attack that is right `hits` times and wrong `misses` times,
    each of `count` times, after Clopper and Pearson."""
    low = np.where(hits > 0, beta.ppf(DOUBT / 2, np.maximum(hits, 1), count - hits + 1), 0.0)
    high = beta.ppf(1 - DOUBT / 2, misses + 1, np.maximum(count - misses, 1))
    return np.log(np.maximum(low - delta, 1e-300) / high)


def attack(first: Any, second: Any, delta: float) -> float:
    """Return a lower bound of the ε of releases from two sets of clients."""
    half = len(first) // 2
    best = (-np.inf, None, 0.0, False)
    for number in statistics(first[:half], second[:half]):
        one, two = (np.sort(number(releases[:half])) for releases in (first, second))
        thresholds = np.quantile(
            np.concatenate([one, two]),
            np.concatenate([TAILS, np.linspace(0.001, 0.999, 400), 1 - TAILS]),
        )
        above = [half - np.searchsorted(each, thresholds) for each in (one, two)]
        for swapped in (False, True):
            wrong, right = above if not swapped else (half - above[1], half - above[0])
            bounds = least_epsilon(right, wrong, half, delta)
            at = int(np.argmax(bounds))
            best = max(best, (bounds[at], number, thresholds[at], swapped), key=lambda b: b[0])
    _, number, threshold, swapped = best
    assert number is not None
    wrong, right = (int((number(each[half:]) > threshold).sum()) for each in (first, second))
    if swapped:
        wrong, right = half - right, half - wrong
    return float(least_epsilon(np.int64(right), np.int64(wrong), half, delta))
