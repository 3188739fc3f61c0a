"""Reading of policies, from files of YAML and from dictionaries of the same content.

`policy.schema.json` beside this module is the JSON Schema of both.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from tffc.assurance.audit.patterns import Pattern
from tffc.assurance.audit.policy import EFFECTS, OPERATORS, PROTECTIONS, RULES, Policy, Waiver
from tffc.assurance.privacy.question import (
    ANY_COHORTS,
    NEIGHBOURS,
    CohortKind,
    Cohorts,
    PrivacyQuestion,
)
from tffc.language.values.misfits import describe
from tffc.support.errors import PolicyError, Span, reader
from tffc.support.files.reading import read_named
from tffc.support.files.strict_json import is_text
from tffc.support.guards import is_listing, is_mapping, is_path, is_tuple
from tffc.support.near import did_you_mean

PolicySource: TypeAlias = "Policy | Mapping[str, Any] | str | os.PathLike[str]"
"""A policy in Python: read already, the content of a file, or the path of one."""


def policy_of(source: PolicySource) -> Policy:
    """Return the policy that a caller in Python names.

    Raises:
      PolicyError: the file cannot be read, or what is named is not a policy.
    """
    if isinstance(source, Policy):
        return source
    if is_path(source):
        return read_policy(pathlib.Path(source))
    if not is_mapping(source):
        raise PolicyError(
            "E971",
            f"a policy cannot be {describe(source)}",
            help="give the path of a YAML file, or its content as a dictionary, such as "
            "{'operators': ['federated_secure_sum']}",
        )
    return _Reader(None, None).policy(source)


PrivacySource: TypeAlias = "PrivacyQuestion | Mapping[str, Any]"
"""A question about privacy in Python: asked already, or as a policy has it under `epsilon`."""


def question_of(source: PrivacySource) -> PrivacyQuestion:
    """Return the question about privacy that a caller in Python asks.

    Raises:
      PolicyError: it is not one.
    """
    return source if isinstance(source, PrivacyQuestion) else _Reader(None, None).question(source)


@reader("a policy", PolicyError)
def read_policy(path: pathlib.Path) -> Policy:
    """Return the policy in a file.

    Raises:
      PolicyError: it cannot be read, or is not a policy.
    """
    import yaml

    from tffc.support.files.yaml_file import MAX_BYTES, read_yaml

    try:
        data = read_named(path, MAX_BYTES)
        content, root, twice = read_yaml(data.decode())
    except OSError as error:
        raise PolicyError(
            "E850",
            f"cannot read the policy {path}: {error.strerror}",
            help="give the path of a file of YAML",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PolicyError(
            "E971",
            f"the policy {path} is not YAML",
            notes=(str(error),),
            help="fix the error in the note; tffc audit --help shows a policy",
        ) from None
    if twice is not None:
        span = Span(str(path), twice.start_mark.line + 1, twice.start_mark.column)
        raise PolicyError(
            "E971", f"the key {twice.value!r} occurs twice", help="remove one", span=span
        )
    policy = _Reader(path, root).policy(content)
    return dataclasses.replace(policy, path=str(path), digest=hashlib.sha256(data).hexdigest())


KeyPath: TypeAlias = "tuple[object, ...]"
"""The keys and indices that lead to a value of a policy."""


class _Reader:
    """Reads the content of a policy; `path` is that of its file, and `root` the file's root."""

    def __init__(self, path: pathlib.Path | None, root: Any) -> None:
        self._path = path
        self._root = root

    def policy(self, content: object) -> Policy:
        if is_mapping(content) and "noise" in content:
            raise self.wrong(
                "the key 'noise' is not a rule: that a value depends on random draws does not say "
                "that it is private",
                ("noise",),
                "demand what noise is for: epsilon: {at-most: 2, delta: 1e-6, rounds: 1500}; the "
                "report lists the draws of each channel",
            )
        entries = self._mapping("the policy", {} if content is None else content, FIELDS, ())
        return Policy(**{name.replace("-", "_"): value for name, value in entries.items()})

    def _mapping(
        self, what: str, content: object, fields: Mapping[str, _Field], path: KeyPath
    ) -> dict[str, Any]:
        if not is_mapping(content):
            raise self.wrong(f"{what} must be a mapping", path)
        entries: dict[str, object] = {}
        for key, value in content.items():
            if not isinstance(key, str) or key not in fields:
                near = did_you_mean(_quoted(key), fields)
                raise self.wrong(
                    f"{what} cannot have the key {_quoted(key)}",
                    (*path, key),
                    near or f"its keys are {', '.join(fields)}",
                )
            entries[key] = value
        return {key: fields[key](self, value, (*path, key)) for key, value in entries.items()}

    def wrong(self, message: str, path: KeyPath, help: str | None = None) -> PolicyError:
        if self._path is None:
            help = help or "tffc explain E971 shows a policy"
            notes = (f"at {_steps(path)} of the policy",) if path else ()
            return PolicyError("E971", message, notes=notes, help=help)
        help = help or "tffc audit --help shows a policy"
        return PolicyError("E971", message, help=help, span=self._span(path))

    def _span(self, path: KeyPath) -> Span | None:
        """Return the span of the value at a path of keys and indices, if it is in a file."""
        if self._path is None:
            return None
        node = self._root
        for step in path:
            # The children of a mapping are pairs of nodes, those of a list are nodes.
            children: Iterable[Any] = getattr(node, "value", ())
            for at, child in enumerate(children):
                if not is_tuple(child):
                    node = child if at == step else node
                    continue
                key, value = cast("tuple[Any, Any]", child)
                if key.value == step:
                    node = value if step is not path[-1] else key
        if node is None:
            return Span(str(self._path), 1)
        return Span(str(self._path), node.start_mark.line + 1, node.start_mark.column)

    # Values.

    def kinds(self, value: object, path: KeyPath) -> tuple[str, ...]:
        known = f"the kinds are {', '.join(EFFECTS)}"
        return self._known(value, path, EFFECTS, "a kind of effect", known)

    def operators(self, value: object, path: KeyPath) -> tuple[str, ...]:
        known = f"the operators are {', '.join(OPERATORS)}"
        return self._known(value, path, OPERATORS, "an operator that takes values", known)

    def _known(
        self, value: object, path: KeyPath, names: Iterable[str], what: str, help: str
    ) -> tuple[str, ...]:
        """Return a list of names, each of which must be one of those known."""
        listed: tuple[str, ...] = TEXTS(self, value, path)
        for name in listed:
            if name not in names:
                near = did_you_mean(name, names) or help
                raise self.wrong(f"{name!r} is not {what}", path, near)
        return listed

    def patterns(self, value: object, path: KeyPath) -> tuple[Pattern, ...]:
        if not is_listing(value):
            raise self.wrong(f"{path[-1]} must be a list of patterns", path)
        return tuple(self._pattern(entry, (*path, at)) for at, entry in enumerate(value))

    def _pattern(self, value: object, path: KeyPath) -> Pattern:
        if is_text(value):
            value = {"pattern": value}
        fields = self._mapping("a pattern", value, PATTERN, path)
        if "pattern" not in fields:
            raise self.wrong("a pattern has no text", path, "give the text as pattern: ...")
        span = self._span(path)
        pattern = Pattern(fields["pattern"].strip(), fields.get("optional", False), span)
        if not pattern.path:
            raise self.wrong("a pattern has no path", path, "give a path as reports print it")
        return pattern

    def effects(self, value: object, path: KeyPath) -> dict[str, Any]:
        return self._mapping(
            "effects", value, {"clients": _Reader.kinds, "server": _Reader.kinds}, path
        )

    def exceptions(self, value: object, path: KeyPath) -> tuple[Waiver, ...]:
        if not is_listing(value):
            raise self.wrong("exceptions must be a list", path)
        return tuple(self._exception(entry, (*path, at)) for at, entry in enumerate(value))

    def _exception(self, value: object, path: KeyPath) -> Waiver:
        fields = self._mapping("an exception", value, EXCEPTION, path)
        missing = [key for key in REQUIRED if key not in fields]
        if missing:
            help = None
            if missing == ["content"]:
                help = "the report of tffc audit has the content of each channel and effect"
            raise self.wrong(f"an exception has no {' and no '.join(missing)}", path, help)
        is_optional = fields.pop("optional", False)
        return Waiver(is_optional=is_optional, span=self._span(path), **fields)

    def epsilon(self, value: object, path: KeyPath) -> PrivacyQuestion:
        """Return the ε that a policy demands, which has to say for what."""
        fields = self._mapping("epsilon", value, EPSILON, path)
        missing = [key for key in ("at-most", "delta", "rounds") if key not in fields]
        if missing:
            raise self.wrong(
                f"epsilon has no {' and no '.join(missing)}",
                path,
                "write epsilon: {at-most: 2, delta: 1e-6, rounds: 1500}",
            )
        return self._question(fields, path)

    def question(self, value: object) -> PrivacyQuestion:
        """Return what a caller in Python asks; whatever it leaves out is as it usually is."""
        return self._question(self._mapping("privacy", value, EPSILON, ()), ())

    def _question(self, fields: Mapping[str, Any], path: KeyPath) -> PrivacyQuestion:
        usual = PrivacyQuestion()
        return PrivacyQuestion(
            fields.get("rounds", usual.rounds),
            fields.get("delta", usual.delta),
            self._cohorts(fields, path),
            fields.get("neighbours", usual.neighbours),
            fields.get("least-clients", usual.least_clients),
            fields.get("at-most"),
            fields.get("not-released", ()),
            fields.get("secret-seeds", usual.has_secret_seeds),
            fields.get("participations"),
        )

    def _cohorts(self, fields: Mapping[str, Any], path: KeyPath) -> Cohorts:
        """Return the choice of clients that the fields of epsilon say."""
        rate, size, population = map(fields.get, ("sampling-rate", "clients-per-round", "clients"))
        if rate is not None:
            for key in ("clients-per-round", "clients"):
                if key in fields:
                    raise self.wrong(
                        f"epsilon has both sampling-rate and {key}", (*path, key), "remove one"
                    )
            return Cohorts(CohortKind.POISSON, rate=rate)
        if size is None and population is None:
            return ANY_COHORTS
        if size is None or population is None:
            names = ("clients-per-round", "clients")
            has, lacks = names if population is None else reversed(names)
            raise self.wrong(
                f"epsilon has {has} and no {lacks}", (*path, has), "give both, or neither"
            )
        if size > population:
            raise self.wrong(
                f"clients-per-round is {size}, and there are {population} clients",
                (*path, "clients-per-round"),
            )
        return Cohorts(CohortKind.FIXED, size=size, population=population)

    def day(self, value: object, path: KeyPath) -> datetime.date:
        # A datetime is a date too, but has a time.
        if type(value) is not datetime.date:
            help = "write datetime.date(2030, 1, 31)" if self._path is None else None
            raise self.wrong(f"{path[-1]} must be a date, such as 2030-01-31", path, help)
        return value

    def rule(self, value: object, path: KeyPath) -> str:
        if value == "epsilon":
            raise self.wrong(
                "there is no exception to epsilon, which is about all that rounds release together",
                path,
                "demand another number with epsilon, or remove it",
            )
        if not isinstance(value, str) or value not in WAIVED:
            near = did_you_mean(_quoted(value), WAIVED)
            message = f"{_quoted(value)} is not a rule"
            raise self.wrong(message, path, near or f"the rules are {', '.join(WAIVED)}")
        return value


WAIVED = tuple(rule for rule in RULES if rule != "epsilon")
"""The rules that exceptions may be to: those about single channels and effects."""


LONGEST_QUOTATION = 200
"""The most characters that are shown of a value."""


def _quoted(value: object) -> str:
    """Return a value of a policy for a message: its text, or what it is if it is not text."""
    if not isinstance(value, str):
        return f"of type {type(value).__name__}"
    return repr(value[:LONGEST_QUOTATION])


def _steps(path: KeyPath) -> str:
    """Return the keys and indices of a path as Python writes them."""
    return "".join(f"[{step if type(step) is int else _quoted(step)}]" for step in path)


_Field = Callable[[_Reader, object, KeyPath], Any]


def _field(
    expected: str, fits: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda value: value
) -> _Field:
    """Return a reader of a field, which converts values that `fits` accepts and refuses others."""

    def read(reader: _Reader, value: object, path: KeyPath) -> Any:
        if not fits(value):
            raise reader.wrong(f"{path[-1]} must be {expected}", path)
        return convert(value)

    return read


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_count(value: object) -> bool:
    return _is_number(value) and value != 0


DECIMAL = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
"""A number that YAML may read as text: it takes 1e-6 for a number only with a dot, as in 1.0e-6."""


def _decimal(value: object) -> float:
    """Return the number that a value is; NaN if it is none."""
    if isinstance(value, str):
        return float(value) if DECIMAL.fullmatch(value) else math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 2**63:
        # A whole number may be too large for a float.
        return math.nan
    return float(value)


def _amount(expected: str, fits: Callable[[float], bool]) -> _Field:
    """Return a reader of a number, which may have an exponent."""
    return _field(expected, lambda value: fits(_decimal(value)), _decimal)


TEXT = _field("text", lambda value: is_text(value) and bool(value.strip()))
TEXTS = _field(
    "a list of names", lambda value: is_listing(value) and all(map(is_text, value)), tuple
)
BOOLEAN = _field("true or false", lambda value: isinstance(value, bool))

PATTERN: dict[str, _Field] = {"pattern": TEXT, "optional": BOOLEAN}

FIELDS: dict[str, _Field] = {
    "operators": _Reader.operators,
    "never-leave": _Reader.patterns,
    "largest-bytes": _field("a number of bytes", _is_number),
    "least-clients": _field("a number of clients", _is_number),
    "single-client": BOOLEAN,
    "effects": _Reader.effects,
    "protection": _field(
        f"one of {', '.join(PROTECTIONS)}",
        lambda value: is_text(value) and value in PROTECTIONS,
        PROTECTIONS.__getitem__,
    ),
    "epsilon": _Reader.epsilon,
    "exceptions": _Reader.exceptions,
}

EPSILON: dict[str, _Field] = {
    "at-most": _amount("a number from 0 on, such as 2 or 0.5", lambda value: 0 <= value < math.inf),
    "delta": _amount(
        "a number between 0 and 1, such as 1e-6 or 0.000001", lambda value: 0 < value < 1
    ),
    "rounds": _field("a number of rounds from 1 on", _is_count),
    "sampling-rate": _amount(
        "a probability above 0, of at most 1, such as 0.01 or 1e-2", lambda value: 0 < value <= 1
    ),
    "clients-per-round": _field("a number of clients from 1 on", _is_count),
    "clients": _field("a number of clients from 1 on", _is_count),
    "neighbours": _field(
        f"one of {', '.join(NEIGHBOURS)}",
        lambda value: is_text(value) and value in NEIGHBOURS,
        NEIGHBOURS.__getitem__,
    ),
    "least-clients": _field("a number of clients from 1 on", _is_count),
    "not-released": TEXTS,
    "secret-seeds": BOOLEAN,
    "participations": _field("a number of rounds from 1 on", _is_count),
}

EXCEPTION: dict[str, _Field] = {
    "channel": TEXT,
    "content": _field(
        "32 hexadecimal digits, as the report prints them",
        lambda value: is_text(value) and re.fullmatch("[0-9a-f]{32}", value) is not None,
    ),
    "rule": _Reader.rule,
    "reason": TEXT,
    "expires": _Reader.day,
    "optional": BOOLEAN,
}

REQUIRED = [key for key in EXCEPTION if key != "optional"]
"""The keys that every exception has."""
