"""Threefry as it is published, and the words that are its results."""

from __future__ import annotations

import numpy as np
import pytest

from tffc.assurance.privacy.modules.word_instructions import WordEvaluation
from tffc.assurance.privacy.modules.word_symbols import PublicArray
from tffc.assurance.privacy.quantities.keystreams import BOTH, Keystreams, SecretWords
from tffc.assurance.privacy.quantities.threefry import MOST_TERMS, Expressions, Leaf
from tffc.assurance.privacy.quantities.word_functions import WordFunctions
from tffc.language.dtypes import DType
from tffc.linking.hlo_modules import HloInstruction, HloShape

VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
"""Keys, counters and results that the authors of Threefry publish with it."""


@pytest.mark.parametrize(("key", "counter", "result"), VECTORS)
def test_published_results(
    key: tuple[int, int], counter: tuple[int, int], result: tuple[int, int]
) -> None:
    words = Expressions()
    one, other = (tuple(map(words.constant, pair)) for pair in (key, counter))
    left, right = words.threefry((one[0], one[1]), (other[0], other[1]))
    assert (left, right) == tuple(map(words.constant, result))


def test_normal_forms() -> None:
    words = Expressions()
    a, b, c = (words.secret(Leaf(0, number, 0)) for number in range(3))

    def added(*terms: int) -> int:
        total = words.constant(0)
        for term in terms:
            total = words.add(total, term) or 0
        return total

    assert added(a, b, c) == added(c, b, a)
    assert added(a, words.constant(2**32 - 1), words.constant(1)) == a
    assert words.add(added(a, b), b, -1) == a
    both = words.exclusive_or(a, b)
    assert both is not None
    assert words.exclusive_or(both, b) == a
    assert words.exclusive_or(a, a) == words.constant(0)
    left, right = words.shifted(a, "left", 13), words.shifted(a, "right", 19)
    assert left is not None
    assert right is not None
    turned = words.inclusive_or(left, right)
    assert turned == words.inclusive_or(right, left) is not None
    other = words.shifted(a, "right", 18)
    assert other is not None
    assert words.inclusive_or(left, other) is None


@pytest.mark.parametrize("operation", ["add", "exclusive_or"])
def test_long_expressions_are_not_followed(operation: str) -> None:
    words = Expressions()
    total: int | None = words.constant(0)
    for number in range(MOST_TERMS):
        assert total is not None
        total = getattr(words, operation)(total, words.secret(Leaf(0, number, 0)))
    assert total is not None
    assert getattr(words, operation)(total, words.secret(Leaf(1, 0, 0))) is None


def words_at(stream: int, counters: list[int], half: int = BOTH) -> SecretWords:
    listed = np.array(counters, np.uint64)
    return SecretWords(stream, listed, np.full(listed.shape, half, np.uint8))


class Draws:
    """Numbers of draws, and what each follows from."""

    def __init__(self) -> None:
        self.origins: list[frozenset[int]] = []

    def derived(self, draws: object, place: str) -> int:
        assert isinstance(draws, frozenset)
        self.origins.append(draws)
        return len(self.origins)


def streams() -> tuple[Keystreams, int]:
    """Streams with a key made of a seed."""
    keystreams = Keystreams(Draws().derived)
    seed = keystreams.of_seed(frozenset((0,)), 1)
    assert seed is not None
    key = keystreams.of_key((Leaf(seed, 0, 0), Leaf(seed, 1, 0)), "")
    assert key is not None
    return keystreams, key


def test_uses_of_words() -> None:
    keystreams, key = streams()
    first = keystreams.use(words_at(key, [0, 1, 2]), "")
    assert first is not None
    assert keystreams.use(words_at(key, [2, 1, 0]), "") == first
    second = keystreams.use(words_at(key, [3, 9]), "")
    assert second not in (None, first)
    overlapping = ([0], [1], [2, 3], [5], [9, 10], [0, 20], [1, 2], [3, 8])
    for counters in overlapping:
        assert keystreams.use(words_at(key, counters), "") is None
    for counters in ([10, 12], [13]):
        assert keystreams.use(words_at(key, counters), "") not in (None, first, second)


def test_halves_are_words_of_their_own() -> None:
    keystreams, key = streams()
    first = keystreams.use(words_at(key, [0, 1], 0), "")
    assert keystreams.use(words_at(key, [0, 1], 1), "") not in (None, first)
    assert keystreams.use(words_at(key, [0, 1]), "") is None


@pytest.mark.parametrize("counters", [[0, 0], [0, 1, 0], [2, 1, 2]])
def test_words_that_are_the_same(counters: list[int]) -> None:
    keystreams, key = streams()
    assert keystreams.use(words_at(key, counters), "") is None


def test_a_seed_is_one_tensor() -> None:
    keystreams = Keystreams(Draws().derived)
    seed = keystreams.of_seed(frozenset((0,)), 1)
    assert keystreams.of_seed(frozenset((0,)), 1) == seed
    assert keystreams.of_seed(frozenset((0,)), 2) is None


def test_the_words_of_a_seed_are_not_uniform() -> None:
    keystreams, key = streams()
    assert keystreams.is_uniform(key)
    assert not keystreams.is_uniform(keystreams.of_seed(frozenset((7,)), 3) or 0)


@pytest.mark.parametrize(
    ("counters", "half", "is_known"),
    [([0, 1], 1, True), ([1, 0], 1, False), ([2, 3], 1, False), ([0, 1], 0, False)],
)
def test_exclusive_or_of_both_halves(counters: list[int], half: int, is_known: bool) -> None:
    keystreams, key = streams()
    evaluation = WordEvaluation(keystreams, WordFunctions())
    shape = HloShape(DType.UINT32, (2,))
    operands = words_at(key, [0, 1], 0), words_at(key, counters, half)
    both = evaluation.symbol(HloInstruction(1, "xor", shape), operands, [shape, shape])
    assert isinstance(both, SecretWords) == is_known
    if isinstance(both, SecretWords):
        assert (both.halves == BOTH).all()


def test_arrays_of_different_shapes_have_no_sum() -> None:
    """XLA repeats no element of an operand."""
    evaluation = WordEvaluation(streams()[0], WordFunctions())
    pair, single = HloShape(DType.UINT32, (2,)), HloShape(DType.UINT32, (1,))
    instruction = HloInstruction(1, "add", pair)
    operands = PublicArray(np.zeros(2, np.uint32)), PublicArray(np.zeros(1, np.uint32))
    assert evaluation.symbol(instruction, operands, [pair, single]) is None
    assert evaluation.symbol(instruction, operands[:1] * 2, [pair, pair]) is not None
