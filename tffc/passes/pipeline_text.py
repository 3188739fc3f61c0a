"""Pipelines as text.

In a file, a pipeline is a YAML mapping of two keys:

    name: default
    passes:
      - drop-identity-maps
      - call-dominant: {option: value}

On the command line it is the passes alone, `drop-identity-maps,call-dominant{option=value}`.

Unknown keys, passes and options are errors, which point into the text; so is a pass whose
requirements do not hold where it stands.  Nothing runs before all of this has been checked.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

from tffc.passes.pipeline import GIVEN, Pass, PassStep, Pipeline, TextPlace
from tffc.support.errors import PipelineError, Span, reader
from tffc.support.near import nearest

KEYS = ("name", "passes")
"""The keys of a pipeline file."""

WORD = re.compile(r"[\w.+\-]+")
SPACE = re.compile(r"\s*")
NUMBER = re.compile(r"-?[0-9]{1,18}")


DEFAULT_FILE = pathlib.Path(__file__).with_name("pipelines") / "default.yaml"
"""The file of the default pipeline."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A pass as it is written: its name and its options, each with its place."""

    name: str
    place: TextPlace
    options: list[tuple[str, Any, TextPlace]]


def default_text() -> str:
    """Return the text of the default pipeline."""
    return DEFAULT_FILE.read_text(encoding="utf-8")


@reader("a list of passes", PipelineError)
def parse_passes(
    text: str,
    passes: Mapping[str, Pass],
    given: tuple[str, ...] = GIVEN,
    source: str = "the passes",
) -> Pipeline:
    """Return the pipeline written as `a,b{option=value},c`; errors call the text `source`.

    Raises:
      PipelineError: the text is not of this kind, names something unknown, or is in a wrong order.
    """
    steps = tuple(_step(entry, passes) for entry in _TextReader(source, text).entries())
    return Pipeline(source, steps, given)


@reader("a pipeline", PipelineError)
def parse_pipeline(
    text: str, source: str, passes: Mapping[str, Pass], given: tuple[str, ...] = GIVEN
) -> Pipeline:
    """Return the pipeline written as YAML in `text`; `source` is the file it is from.

    Raises:
      PipelineError: the text is not YAML, or not a pipeline as the module's text describes it.
    """
    name, entries = _YamlReader(source).read(text)
    return Pipeline(name, tuple(_step(entry, passes) for entry in entries), given)


def _step(entry: Entry, passes: Mapping[str, Pass]) -> PassStep:
    each = passes.get(entry.name)
    if each is None:
        message = f"there is no pass {entry.name!r}"
        raise entry.place.error("E361", message, help=nearest(entry.name, passes))
    options: dict[str, Any] = {}
    for name, value, place in entry.options:
        if name not in each.options:
            message = f"the pass {each.name} has no option {name!r}"
            raise place.error("E367", message, help=nearest(name, each.options))
        wanted = each.options[name].annotation
        if type(value) is not wanted:
            message = f"the option {name} of {each.name} has to be {wanted.__name__}"
            raise place.error("E367", f"{message}, found {value!r}")
        if name in options:
            raise place.error("E367", f"the option {name} of {each.name} occurs twice")
        options[name] = value
    return PassStep(each, options, entry.place)


class _TextReader:
    """Reads the command line's notation."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self.text = text
        self.at = 0

    def entries(self) -> Iterator[Entry]:
        """Yield the passes, separated by commas."""
        while True:
            name, place = self._word("the name of a pass")
            options = list(self._options()) if self._take("{") else []
            yield Entry(name, place, options)
            if not self._take(","):
                break
        if self.at < len(self.text):
            self._expected("`,` or `{`" if not options else "`,`")

    def _options(self) -> Iterator[tuple[str, Any, TextPlace]]:
        while True:
            name, place = self._word("the name of an option")
            if not self._take("="):
                self._expected("`=`")
            value, end = self._word("a value")
            yield name, _value(value), place._replace(end=end.end)
            if self._take("}"):
                return
            if not self._take(","):
                self._expected("`,` or `}`")

    def _word(self, what: str) -> tuple[str, TextPlace]:
        self._skip()
        match = WORD.match(self.text, self.at)
        if match is None:
            self._expected(what)
        self.at = match.end()
        return match.group(), self._place(match.start(), match.end())

    def _take(self, sign: str) -> bool:
        self._skip()
        found = self.text.startswith(sign, self.at)
        self.at += found
        return found

    def _skip(self) -> None:
        self.at = SPACE.match(self.text, self.at).end()  # pyright: ignore[reportOptionalMemberAccess]  # it matches nothing too

    def _place(self, start: int, end: int) -> TextPlace:
        return TextPlace(self.source, None, self.text, start, end)

    def _expected(self, what: str) -> NoReturn:
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        place = self._place(self.at, self.at + 1)
        raise place.error("E371", f"expected {what}, found {found}")


def _value(word: str) -> Any:
    """Return the value that a word of the command line's notation stands for."""
    if word in ("true", "false"):
        return word == "true"
    return int(word) if NUMBER.fullmatch(word) else word


class _YamlReader:
    """Reads a pipeline file, keeping the line of everything in it."""

    def __init__(self, source: str) -> None:
        self.source = source

    def read(self, text: str) -> tuple[str, list[Entry]]:
        """Return the name of the pipeline and its entries."""
        import yaml

        from tffc.support.files.yaml_file import read_yaml

        try:
            content, root, _ = read_yaml(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            span = None if mark is None else Span(self.source, mark.line + 1, mark.column)
            raise PipelineError(
                "E362",
                f"{self.source} is not YAML: {getattr(error, 'problem', None) or error}",
                span=span,
            ) from None
        self._check_keys(content, root)
        if not isinstance(content["name"], str) or not isinstance(content["passes"], list):
            raise PipelineError("E362", f"in {self.source}, name has to be text and passes a list")
        assert root is not None
        nodes = next(value for key, value in root.value if key.value == "passes")
        entries = zip(content["passes"], nodes.value, strict=True)
        return content["name"], [self._entry(entry, node) for entry, node in entries]

    def _check_keys(self, content: Any, root: Any) -> None:
        """Refuse what is not a mapping with each key once, and point at the first wrong key."""
        keys = [key for key, _ in root.value] if isinstance(content, dict) and root else []
        names = [str(key.value) for key in keys]
        if sorted(names) == sorted(KEYS):
            return
        message = f"{self.source} has to be a mapping with the keys name and passes"
        for index, name in enumerate(names):
            if name not in KEYS or name in names[:index]:
                span = self._place(keys[index]).span
                help = "it occurs twice" if name in KEYS else nearest(name, KEYS)
                break
        else:
            span = help = None
        raise PipelineError("E362", message, help=help, span=span)

    def _entry(self, entry: Any, node: Any) -> Entry:
        if isinstance(entry, str):
            return Entry(entry, self._place(node), [])
        named = cast("dict[Any, Any]", entry) if isinstance(entry, dict) else {}
        for name, options in named.items() if len(named) == 1 else ():
            ((key, values),) = node.value
            if isinstance(name, str) and isinstance(options, dict):
                pairs = zip(cast("dict[Any, Any]", options).items(), values.value, strict=False)
                found = [(str(k), v, self._place(inner)) for (k, v), (inner, _) in pairs]
                if len(found) < len(values.value):
                    raise self._place(values).error("E367", f"{name} has an option twice")
                return Entry(name, self._place(key), found)
        raise self._place(node).error(
            "E362", f"{entry!r} is neither a pass nor a pass with a mapping of options"
        )

    def _place(self, node: Any) -> TextPlace:
        start, end = node.start_mark, node.end_mark
        same = end.line == start.line
        span = Span(
            self.source, start.line + 1, start.column, end.line + 1, end.column if same else None
        )
        return TextPlace(self.source, span)
