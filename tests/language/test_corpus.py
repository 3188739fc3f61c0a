"""Computations that TensorFlow Federated serialized and printed: read, printed, written back.

The folder that TFFC_CORPUS names has one folder a computation, with `comp.pb`, what TensorFlow
Federated printed for it, and in `forms.json` how loading it went.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import zlib

import pytest

from tffc.language import Compiled
from tffc.language.fingerprint import Section
from tffc.language.notation import compact, formatted, structural
from tffc.language.traverse import walk
from tffc.language.wire import from_bytes, to_bytes
from tffc.support.errors import WireError

CORPUS = os.environ.get("TFFC_CORPUS")
FILES = sorted(pathlib.Path(CORPUS).glob("*/*.pb")) if CORPUS else []

pytestmark = pytest.mark.skipif(not CORPUS, reason="TFFC_CORPUS names no folder of computations")


def reference_name(section: Section) -> str:
    """The name that TensorFlow Federated gives to a section: a checksum of its message."""
    assert isinstance(section, Compiled)
    return f"{zlib.adler32(to_bytes(section)):x}"


def printed_by_reference(file: pathlib.Path, form: str) -> str | None:
    """What TensorFlow Federated printed, if it did; data is printed there as an address."""
    prefix = "" if file.name == "comp.pb" else "init_"
    path = file.with_name(f"{prefix}{form}.txt")
    return path.read_text().removesuffix("\n") if path.exists() else None


def load_error(file: pathlib.Path) -> str | None:
    record = json.loads(file.with_name("forms.json").read_text())
    return record.get("load_error", {}).get("message")


def without_addresses(text: str) -> str:
    return re.sub(r"data#[0-9a-f]{8}|\b[0-9]{15}\b", "DATA", text)


def case_id(file: pathlib.Path) -> str:
    return f"{file.parent.name}/{file.stem}"


@pytest.mark.parametrize("file", FILES, ids=case_id)
def test_computation(file: pathlib.Path) -> None:
    data = file.read_bytes()
    if load_error(file) is not None:
        with pytest.raises(WireError):
            from_bytes(data)
        return
    node = from_bytes(data)
    assert to_bytes(node) == data
    texts = {
        "type": str(node.type),
        "type_formatted": node.type.formatted_representation(),
        "compact": compact(node, reference_name),
        "formatted": formatted(node, reference_name),
        "structural": structural(node, reference_name),
    }
    has_data = "data#" in texts["compact"]
    for form, text in texts.items():
        expected = printed_by_reference(file, form)
        if expected is None or (has_data and form == "structural"):
            continue
        if has_data:
            text, expected = without_addresses(text), without_addresses(expected)
        assert text == expected, form


@pytest.mark.parametrize("file", FILES, ids=case_id)
def test_printed_names_of_sections_are_their_fingerprints(file: pathlib.Path) -> None:
    if load_error(file) is not None:
        return
    node = from_bytes(file.read_bytes())
    names = re.findall(r"comp#(\w+)", compact(node))
    assert all(re.fullmatch("[0-9a-f]{8}", name) for name in names)
    assert bool(names) == any(isinstance(inner, Compiled) for inner in walk(node))


def test_corpus_has_what_it_should() -> None:
    refused = [case_id(file) for file in FILES if load_error(file) is not None]
    assert len(FILES) > len(refused) > 0
