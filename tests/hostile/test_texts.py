"""JSON and YAML from anybody: what does not fit its type is refused where it is read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import yaml

from tffc.language import TensorType
from tffc.language.notation import parse
from tffc.language.wire import from_bytes, to_bytes, type_to_bytes
from tffc.support.files.strict_json import NotJsonError, encode_json, read_json
from tffc.support.files.yaml_file import read_yaml

JSON = {
    "a large integer": ("1" + "0" * 400, "an integer has more than 64 bits"),
    "a huge integer": ("9" * 5000, "an integer has more than 64 bits"),
    "one too many": (str(2**64), "an integer has more than 64 bits"),
    "a negative one": (f'{{"a": [-{2**64}]}}', "an integer has more than 64 bits"),
    "a large fraction": ("[1e400]", "a number is too large"),
    "a negative fraction": ("-1.5E999", "a number is too large"),
    "half of a character": (r'"\ud800"', "a text has half of a character"),
    "in a key": (r'{"\uDFFF": 1}', "a text has half of a character"),
    "the halves turned round": (r'["\udc00\ud800"]', "a text has half of a character"),
    "not a number": ("NaN", "JSON has no NaN"),
    "a key twice": ('{"a": 1, "a": 2}', "the key 'a' occurs twice in an object"),
    "bytes": (b"\xff", "it is not JSON"),
    "depth": ("[" * 100_000, "it is not JSON"),
}


@pytest.mark.parametrize(("text", "message"), JSON.values(), ids=JSON)
def test_json_that_no_reader_agrees_on(text: str | bytes, message: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        read_json(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("value", [2**64 - 1, -(2**64) + 1, 1e308, "\U0001f600", "\\ud800", "é"])
def test_json_that_fits(value: Any) -> None:
    assert read_json(encode_json(value)) == value
    assert read_json(json.dumps(value)) == value


YAML = {
    "a huge integer": "9" * 5000,
    "31 digits": "1" * 31,
    "an integer that is none": "!!int 0x" + "f" * 5000,
    "an integer to base 60": "!!int " + "1:" * 1000 + "1",
    "a fraction that is none": "!!float 1:1.5",
    "a large exponent": "!!float 1.5e99999",
    "a list as a number": "!!int [1]",
    "bytes": "!!binary aGVsbG8=",
    "a set": "!!set {a}",
    "an object": "!!python/object:os.system {}",
    "a date": "2026-13-01",
    "half of a character": r'"\uD800"',
    "half of a character in a key": r'a: [{"b\uDFFF": 1}]',
    "a character after the last one": r'"\UFFFFFFFF"',
    "an infinite number": "1.0e999",
    "a long fraction": f"1.{'0' * 70}",
    "an integer as a fraction, too long": f"!!float {'1' * 400}.0",
}


@pytest.mark.parametrize("text", YAML.values(), ids=YAML)
def test_yaml_that_does_not_fit(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a: 1\na: 2", "a"),
        ("a: [{b: 1, c: 2, b: 3}]", "b"),
        ("true: 1\nyes: 2", "yes"),
        ("1: a\n01: b", "01"),
        ("1: a\n1.0: b", "1.0"),
        ("~: a\nnull: b", "null"),
        ("2026-01-01: a\n2026-01-01: b", "2026-01-01"),
    ],
)
def test_repeated_keys(text: str, key: str) -> None:
    repeated = read_yaml(text).repeated
    assert repeated is not None
    assert repeated.value == key


def test_a_merged_key_is_not_repeated() -> None:
    document = read_yaml("base: &base {a: 1}\nother: {<<: *base, a: 2}")
    assert (document.content["other"], document.repeated) == ({"a": 2}, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4000000", 4_000_000),
        ("-12", -12),
        ("007", 7),
        ("1.5", 1.5),
        ("-.5e3", -500.0),
        ("true", True),
        ("~", None),
        # Numbers of YAML 1.1 that JSON, and YAML 1.2, do not have.
        ("0x10", "0x10"),
        ("0b1", "0b1"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        (":".join("1" * 100_000), ":".join("1" * 100_000)),
    ],
)
def test_yaml_that_is_read(text: str, value: Any) -> None:
    (content,) = read_yaml(f"- {text}").content
    assert (content, type(content)) == (value, type(value))


@pytest.mark.parametrize(
    "text", ["int32[-5]", "int32[-1]", "float32[2,-3]", "<a=str[-0,-9]>", "{int8[-7]*}@CLIENTS"]
)
def test_negative_sizes_in_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r"a size is -[13579]") as caught:
        parse(f"(x:{text} -> x)")
    assert getattr(caught.value, "code", "") == "E112"


def test_negative_sizes_in_messages() -> None:
    known = to_bytes(parse("(x:int32[?] -> x)"))
    unknown = b"\xff" * 9 + b"\x01"
    assert unknown in known
    for size in (2, 5, 2**62):
        with pytest.raises(ValueError, match=f"a size is -{size}") as caught:
            from_bytes(known.replace(unknown, _varint(2**64 - size)))
        assert getattr(caught.value, "code", "") == "E216"


@pytest.mark.parametrize("size", [-1, -5, 2**63, 2**64, 2**70])
def test_sizes_that_no_message_holds(size: int) -> None:
    with pytest.raises(ValueError, match=f"a size is {size}") as caught:
        type_to_bytes(TensorType(np.int32, [3, size]))
    assert getattr(caught.value, "code", "") == "E112"


def _varint(value: int) -> bytes:
    groups = [(value >> shift) & 127 for shift in range(0, 70, 7)]
    return bytes([*(each | 128 for each in groups[:-1]), groups[-1]])
