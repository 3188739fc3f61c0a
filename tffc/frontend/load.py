"""Loading the computation or iterative process that a user names on the command line.

A target is `MODULE` or `MODULE:NAME`.  The module is the path of a `.py` file or a dotted name; the
name is that of an attribute, as in `process` or `process.next`.  Without a name, the module's only
candidate is taken.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
import sys
from collections.abc import Callable
from types import FunctionType as PythonFunction
from types import ModuleType
from typing import Literal, TypeAlias, TypeGuard, TypeVar

from tffc.frontend.computation import (
    Computation,
    PolymorphicComputation,
    computation_of_message,
)
from tffc.frontend.hints import described
from tffc.frontend.templates import IterativeProcess
from tffc.frontend.templates.rounds import round_of
from tffc.language import Node
from tffc.runtime.user_code.import_failures import import_failure
from tffc.runtime.user_code.modules import import_source, split_target
from tffc.runtime.user_code.own_modules import namespace
from tffc.runtime.user_code.source import entry_point, keep_users_frames
from tffc.support.errors import LanguageTypeError, LoadError, TffcError
from tffc.support.near import did_you_mean


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded target: a computation, or the round of a process with the computation of its first
    state.

    `name` is its name in the module.  `initialize` is None unless it is a process; its rounds have
    the shape that forms take (see `tffc.frontend.templates.rounds`).  `passed_over` are the names
    of candidates that did not fit, if it was chosen among several.
    """

    kind: Literal["computation", "process"]
    name: str
    computation: Computation
    initialize: Computation | None = None
    passed_over: tuple[str, ...] = ()

    @property
    def discount(self) -> Computation | None:
        """The weight of a contribution by its age, if rounds may be buffered."""
        return self.computation.discount

    @property
    def parts(self) -> tuple[Computation, ...]:
        """All of its computations: the round, that of the first state, and the discount."""
        parts = (self.computation, self.initialize, self.discount)
        return tuple(part for part in parts if part is not None)

    @property
    def allow_effects(self) -> frozenset[str] | None:
        """The kinds of effects that it may have when it is run; None if all of it was traced in
        this process.  All computations have to allow a kind."""
        foreign = [part.allow_effects for part in self.parts if part.allow_effects is not None]
        return foreign[0].intersection(*foreign) if foreign else None


FEDERATED_LANGUAGE = "federated_language"
"""The package whose own computations are read by their messages."""

C = TypeVar("C")

Candidate: TypeAlias = Computation | IterativeProcess


@entry_point
def load(target: str, fits: Callable[[Computation], int] | None = None) -> Loaded:
    """Import the module of `target` and return the computation or process that it names.

    If several are possible, return the only one that `fits` best: a computation, or the round of a
    process.  What it gives 0 for does not fit.

    Raises:
      LoadError: there is no such module, it is not valid Python, it raised an exception (which is
        the cause of the error, its traceback starting in the module), or it has no or several
        candidates, or none of that name.
      TffcError: the module raised one of ours while a computation in it was traced.
    """
    source, name = split_target(target)
    module = import_source(source)
    candidates = _candidates(module)
    if name is not None:
        return _named(module, candidates, source, name)
    if len(candidates) == 1:
        return _loaded(*next(iter(candidates.items())))
    if not candidates:
        raise _no_candidate(module, source)
    ranks = {n: fits(_loaded(n, c).computation) if fits else 0 for n, c in candidates.items()}
    best = max(ranks.values())
    fitting = {n: c for n, c in candidates.items() if best and ranks[n] == best}
    if len(fitting) == 1:
        ((name, candidate),) = fitting.items()
        passed_over = tuple(other for other in candidates if other != name)
        return dataclasses.replace(_loaded(name, candidate), passed_over=passed_over)
    shown = fitting or candidates
    processes = [name for name, value in shown.items() if isinstance(value, IterativeProcess)]
    raise LoadError(
        "E449",
        f"{source} has {len(shown)} candidates, so one must be named",
        notes=tuple(f"{name}: {_signature(candidate)}" for name, candidate in shown.items()),
        help=f"give the name after a colon, for example {source}:{[*shown, *processes][-1]}",
    )


def _candidates(module: ModuleType) -> dict[str, Candidate]:
    """Return the computations and processes of a module by name, in order of definition.

    Imported ones count only if the module defines none itself; parts of a process do not count.
    """
    candidates: dict[str, Candidate] = {}
    seen: set[int] = set()
    for name, value in namespace(module).items():
        if type(name) is not str or id(value) in seen:
            continue
        candidate = of_the_package(value)
        if _is_candidate(candidate):
            seen.add(id(value))
            candidates[name] = candidate
    foreign = {id(value) for value in candidates.values() if _traced_in(value) != _name_of(module)}
    # Other modules have very many objects, which are asked for only if one of these may be theirs.
    imported = foreign & _held_elsewhere(module) if foreign else foreign
    own = {name: value for name, value in candidates.items() if id(value) not in imported}
    return _paired(_without_parts(own or candidates))


def _is_candidate(value: object) -> TypeGuard[Candidate]:
    """Return whether an object is a computation or a process, and whole: a class of the user's may
    leave out what the constructor of ours sets, or raise when it is asked for that."""
    if not _is_a(value, Computation, IterativeProcess):
        return False
    try:
        parts = (value.initialize, value.next) if isinstance(value, IterativeProcess) else (value,)
        return all(map(_is_whole, parts))
    except Exception:  # noqa: BLE001 - a class of the user's raises what it likes
        return False


def _is_a(value: object, *classes: type[C]) -> TypeGuard[C]:
    """Return whether an object is of one of these classes, without asking the object, which may be
    a proxy for something that is not there."""
    return issubclass(type(value), classes)


def _is_whole(value: object) -> bool:
    node = operator.attrgetter("node")
    return isinstance(value, Computation) and isinstance(node(value), Node)


def _traced_in(value: Candidate) -> str | None:
    """Return the name of the module that defines the traced function, if that says it."""
    computation = value.next if isinstance(value, IterativeProcess) else value
    name = inspect.getattr_static(computation, "__module__", None)
    return name if type(name) is str else None


def _name_of(module: object) -> str | None:
    """Return what a module calls itself, if that is a name."""
    name = namespace(module).get("__name__")
    return name if type(name) is str else None


def _held_elsewhere(module: ModuleType) -> set[int]:
    """Return the ids of all objects that other modules have names for."""
    others = [other for other in list(sys.modules.values()) if other is not module]
    return {id(value) for other in others for value in list(namespace(other).values())}


def _paired(candidates: dict[str, Candidate]) -> dict[str, Candidate]:
    """Combine computations named `initialize` and `next` into a process, if they form one."""
    initialize, round_ = candidates.get("initialize"), candidates.get("next")
    if not isinstance(initialize, Computation) or not isinstance(round_, Computation):
        return candidates
    try:
        process = IterativeProcess(initialize, round_)
    except LanguageTypeError:
        return candidates
    paired = candidates | {"next": process}
    return {name: value for name, value in paired.items() if name != "initialize"}


def _parts(candidates: dict[str, Candidate]) -> dict[str, Computation]:
    """Return the processes' own computations by their names."""
    processes = {
        name: value for name, value in candidates.items() if isinstance(value, IterativeProcess)
    }
    return {
        f"{name}.{part}": getattr(process, part)
        for name, process in processes.items()
        for part in ("initialize", "next")
    }


def _without_parts(candidates: dict[str, Candidate]) -> dict[str, Candidate]:
    parts = set(map(id, _parts(candidates).values()))
    return {name: value for name, value in candidates.items() if id(value) not in parts}


def _named(module: ModuleType, candidates: dict[str, Candidate], source: str, name: str) -> Loaded:
    first, _, rest = name.partition(".")
    try:
        value = candidates[first] if first in candidates else getattr(module, first)
        value = operator.attrgetter(rest)(value) if rest else value
    except AttributeError:
        known = [*candidates, *_parts(candidates)] if rest else candidates
        raise LoadError(
            "E439",
            f"{source} defines nothing named {name!r}",
            notes=tuple(f"{name}: {_signature(value)}" for name, value in candidates.items()),
            help=did_you_mean(name, known),
        ) from None
    except TffcError:
        raise
    except Exception as error:
        keep_users_frames(error)
        raise import_failure(source, error) from error
    value = of_the_package(value)
    if _is_candidate(value):
        return _loaded(name, value)
    if _is_a(value, PolymorphicComputation) or _is_polymorphic_of_the_package(value):
        raise LoadError(
            "E414",
            f"{name!r} in {source} is polymorphic, so its types are not known",
            help="give its decorator the types of its parameters",
        )
    raise LoadError(
        "E465",
        f"{name!r} in {source} is not a computation but {described(value)}",
        help=_how_to_make_one(first, value),
    )


def _how_to_make_one(name: str, value: object) -> str:
    """Return how to make a computation or process from an object that is neither."""
    if callable(inspect.getattr_static(value, "create", None)):
        return f"apply it to a type: process = {name}.create(tff.TensorType(np.float32))"
    help = (
        "decorate a function with @tff.federated_computation(...), or with "
        "@tff.tf_computation(...) if it is TensorFlow"
    )
    if _is_a(value, PythonFunction) and not value.__code__.co_argcount:
        return f"{help}; if it makes one, name what it returns: process = {name}()"
    return help


def _no_candidate(module: ModuleType, source: str) -> LoadError:
    values = [item for item in namespace(module).items() if type(item[0]) is str]
    polymorphic = [name for name, value in values if _is_a(value, PolymorphicComputation)]
    functions = [
        name
        for name, value in values
        if _is_a(value, PythonFunction) and value.__globals__ is namespace(module)
    ]
    notes: list[str] = []
    if polymorphic:
        notes.append(f"without types for their parameters: {', '.join(polymorphic)}")
    if functions:
        notes.append(f"plain Python functions: {', '.join(functions)}")
    return LoadError(
        "E465",
        f"{source} defines no computation and no iterative process",
        notes=tuple(notes),
        help="decorate a function with @tff.federated_computation(...), with the types of its "
        "parameters",
    )


def loaded_object(value: object) -> Loaded | None:
    """Return what `load` would return for an object; None if it is no computation or process.

    A computation of the package federated_language itself is read by its message.

    Raises:
      LoadError: it is a computation whose types are not known.
      WireError: its message is not well formed.
    """
    value = of_the_package(value)
    if _is_candidate(value):
        named = value.next if isinstance(value, IterativeProcess) else value
        name = getattr(named, "name", "")
        return _loaded(name if isinstance(name, str) else "", value)
    if _is_a(value, PolymorphicComputation) or _is_polymorphic_of_the_package(value):
        raise LoadError(
            "E414",
            "the computation is polymorphic, so its types are not known",
            help="give its decorator the types of its parameters",
        )
    return None


def of_the_package(value: object) -> object:
    """Return the computation that an object of federated_language's own classes is, read by its
    message; any other object unchanged.

    Raises:
      WireError: its message is not well formed.
    """
    if not _is_of_the_package(value):
        return value
    to_proto = getattr(value, "to_proto", None)
    message = to_proto() if callable(to_proto) else None
    name = getattr(getattr(message, "DESCRIPTOR", None), "name", None)
    return computation_of_message(message) if name == "Computation" else value


def _is_of_the_package(value: object) -> bool:
    module = vars(type(value)).get("__module__")
    return isinstance(module, str) and module.partition(".")[0] == FEDERATED_LANGUAGE


def _is_polymorphic_of_the_package(value: object) -> bool:
    return _is_of_the_package(value) and hasattr(value, "fn_for_argument_type")


def _loaded(name: str, value: Candidate) -> Loaded:
    if isinstance(value, IterativeProcess):
        return Loaded("process", name, round_of(value), value.initialize)
    return Loaded("computation", name, value)


def _kind(process: IterativeProcess) -> str:
    name = type(process).__name__
    if name == "IterativeProcess":
        return "an iterative process"
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _signature(value: Candidate) -> str:
    if isinstance(value, IterativeProcess):
        return f"{_kind(value)} of rounds {value.next.type_signature}"
    return str(value.type_signature)
