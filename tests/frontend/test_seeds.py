"""What is drawn while a module is imported or traced is the same each time that it is loaded."""

from __future__ import annotations

import pathlib
import pickle
import random
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.processes import ENVIRONMENT, run_python
from tffc.runtime.user_code import seeds
from tffc.runtime.user_code.modules import import_source
from tffc.support.errors import LoadError

LAYERS = pathlib.Path(__file__).with_name("keras_layers.py")

HEADER = """\
import random
import numpy as np
import tffc as tff

def numbers():
    return random.randint(0, 10**9), int(np.random.randint(10**9))

def program(name):
    def traced():
        return tff.federated_value(numbers(), tff.SERVER)
    traced.__name__ = name
    return tff.federated_computation(traced)

"""
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a new module with this text, as in a process that drew before."""

    def load_text(text: str, name: str = "drawing") -> Any:
        random.seed()
        np.random.seed()
        path = tmp_path / f"{name}.py"
        path.write_text(HEADER + text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        module = import_source(str(path))
        monkeypatch.delitem(sys.modules, name)
        return module

    return load_text


def test_what_an_import_draws(load: Load) -> None:
    text = "drawn = [numbers() for _ in range(3)]"
    first = load(text).drawn
    assert load(text).drawn == first
    assert len({number for pair in first for number in pair}) == 6


def test_what_a_trace_draws_depends_on_nothing_else(load: Load) -> None:
    alone = load("a = program('a')").a
    after = load("numbers()\nb = program('b')\na = program('a')\n")
    assert after.a == alone != after.b


def test_a_trace_within_a_trace(load: Load) -> None:
    text = """
drawn = []
@tff.federated_computation
def outer():
    {inner}
    drawn.append(numbers())
    return tff.federated_value(0, tff.SERVER)
"""
    assert load(text.format(inner="program('inner')")).drawn == load(text.format(inner="")).drawn


@pytest.mark.parametrize("seed", ["random.seed", "np.random.seed"])
def test_seeds_of_the_module_count(load: Load, seed: str) -> None:
    def numbers(value: int) -> Any:
        text = f"first = program('a')\n{seed}({value})\ndrawn = numbers()\nsecond = program('a')"
        module = load(text)
        return module.first, module.drawn, module.second

    one, again, two = numbers(1), numbers(1), numbers(2)
    assert one == again
    assert one[0] == two[0]
    assert one[1] != two[1]
    assert one[2] != two[2]


def test_numbers_after_a_seed_are_the_seeds(load: Load) -> None:
    drawn = load("random.seed(5)\nnp.random.seed(6)\ndrawn = numbers()").drawn
    assert drawn == (
        random.Random(5).randint(0, 10**9),
        np.random.RandomState(6).randint(10**9),
    )


def test_seeds_of_a_computation_are_its_own(load: Load) -> None:
    text = """
@tff.federated_computation
def seeded():
    {seed}
    return tff.federated_value(numbers(), tff.SERVER)

later = program('later')
"""
    seeded, plain = load(text.format(seed="random.seed(1)")), load(text.format(seed="pass"))
    assert seeded.seeded != plain.seeded
    assert seeded.later == plain.later


def test_imports_draw_for_themselves(load: Load, tmp_path: pathlib.Path) -> None:
    (tmp_path / "drawing_too.py").write_text("import random\nnumber = random.random()\n")
    text = "import drawing_too\ndrawn = numbers()\nnumber = drawing_too.number\n"
    first, second = load(text), load(text)
    assert (first.drawn, first.number) == (second.drawn, second.number)
    sys.modules.pop("drawing_too")
    other = load("numbers()\n" + text)
    assert other.number == first.number
    sys.modules.pop("drawing_too")


def test_imports_that_run_no_code_leave_generators_alone(
    load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[str] = []
    start = seeds._start
    monkeypatch.setattr(seeds, "_start", lambda name: (starts.append(name), start(name)))
    (tmp_path / "bundled").mkdir()
    (tmp_path / "bundled" / "__init__.py").write_text("")
    (tmp_path / "bundled" / "part.py").write_text("import random\nrandom.random()\n")
    with_import = "import bundled\nfrom bundled import part\nimport bundled.part\n"
    module = load(with_import + "from bundled import part\nlast = numbers()\n")
    assert [each for each in starts if "bundled" in each] == ["import bundled", "import bundled"]
    assert module.last == load("last = numbers()").last


def test_seeds_of_an_imported_module_count(load: Load, tmp_path: pathlib.Path) -> None:
    (tmp_path / "seeding.py").write_text("import random\nrandom.seed(5)\n")
    drawn = load("import seeding\nnumber = random.random()\n").number
    sys.modules.pop("seeding")
    assert drawn == random.Random(5).random()


def test_generators_are_left_as_they_were(load: Load, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "seeding.py"
    path.write_text("import random, numpy\nrandom.seed(1)\nnumpy.random.seed(1)\n")
    functions = __builtins__["__import__"], random.seed, np.random.seed
    states = random.getstate(), repr(np.random.get_state())
    import_source(str(path))
    assert (random.getstate(), repr(np.random.get_state())) == states
    assert functions == (__builtins__["__import__"], random.seed, np.random.seed)


@pytest.mark.parametrize("text", ["import no_such_module", "random.seed([])"])
def test_errors_of_imports_and_seeds_are_the_modules_own(load: Load, text: str) -> None:
    with pytest.raises(LoadError) as caught:
        load(text)
    assert caught.value.code == "E437"
    assert caught.value.span is not None
    assert caught.value.span.line == len((HEADER + text).splitlines())
    cause = caught.value.__cause__
    assert cause is not None
    files = {frame.filename for frame in traceback.extract_tb(cause.__traceback__)}
    assert files <= {caught.value.span.file, random.__file__}


def test_generators_of_a_process_of_ones_own_are_not_touched() -> None:
    import tffc as tff

    def traced() -> Any:
        return tff.federated_value(random.random(), tff.SERVER)

    random.seed(1)
    first = tff.federated_computation(traced)
    assert first() == pytest.approx(random.Random(1).random())
    assert tff.federated_computation(traced) != first


def traced_in_a_process(folder: pathlib.Path, names: str, seed: str, *run: str) -> dict[str, bytes]:
    """The computations of the module of layers, traced under another seed of Python's hashes."""
    out = folder / f"{seed}.pickle"
    environment = {**ENVIRONMENT, "PYTHONHASHSEED": seed, "KERAS_LAYERS": names}
    ended = run_python("-W", "ignore", str(LAYERS), str(out), *run, env=environment, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return pickle.loads(out.read_bytes())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "names", ["usual", pytest.param("all", marks=pytest.mark.long)], ids=lambda names: names
)
def test_layers_and_optimizers_of_keras(names: str, tmp_path: pathlib.Path) -> None:
    first = traced_in_a_process(tmp_path, names, "1", "run")
    second = traced_in_a_process(tmp_path, names, "2")
    assert first.keys() == second.keys()
    assert [name for name, content in first.items() if second[name] != content] == []
