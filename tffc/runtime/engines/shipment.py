"""Data for workers in other processes: a bundle's programs, and the source of clients' data.

The bundle is sent as Protocol Buffers messages.  Only the source is pickled, because it may be the
user's own object.
"""

from __future__ import annotations

import importlib
import pickle
from typing import Any

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.form import Side
from tffc.backends.forms.steps import RoundSteps
from tffc.language import wire
from tffc.language.nodes import Compiled
from tffc.language.traverse import walk
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.process import steps_of_bundle
from tffc.runtime.engines.sections import load_section, name_programs
from tffc.support.errors import DataError, TffcError


def bundle_to_bytes(bundle: Bundle) -> bytes:
    """Encode a bundle's form and programs, except for the one that makes the initial state, and
    without resources."""
    programs = {"": bundle.computation, **bundle.components}
    encoded = [(name.encode(), wire.to_bytes(node)) for name, node in programs.items()]
    return encode((bundle.form.encode(), encoded))


def bundle_from_bytes(data: bytes) -> Bundle:
    """Restore a bundle from the result of `bundle_to_bytes`."""
    form, programs = decode(data)
    components = {name.decode(): wire.from_bytes(content) for name, content in programs}
    return Bundle(form.decode(), components.pop(""), components, None, {})


def load_bundle(data: bytes) -> tuple[Bundle, RoundSteps]:
    """Restore a bundle, with its steps.

    The graphs that workers run are loaded here, so that the first client does not wait for them.
    """
    bundle = bundle_from_bytes(data)
    at_server = bundle.read_form().names_at(Side.SERVER)
    for name, component in bundle.components.items():
        for node in walk(component) if name not in at_server else ():
            if isinstance(node, Compiled):
                _load(node, bundle)
    return bundle, steps_of_bundle(bundle)


def _load(section: Compiled, bundle: Bundle) -> None:
    try:
        load_section(section)
    except TffcError as error:
        name_programs(error, section, bundle.components)
        raise


def source_to_bytes(source: ClientSource, pickler: str) -> bytes:
    """Pickle a source with the module named `pickler`, such as `cloudpickle`.

    Raises:
      DataError: the source cannot be pickled.
    """
    try:
        return importlib.import_module(pickler).dumps(source)
    except (TypeError, AttributeError, ValueError, pickle.PicklingError) as error:
        raise DataError(
            "E932",
            f"the clients' data cannot be sent to other processes: {error}",
            help="name where the data is, or give a source that can be pickled",
        ) from error


def source_from_bytes(data: bytes) -> Any:
    """Restore a source from the result of `source_to_bytes`."""
    return pickle.loads(data)
