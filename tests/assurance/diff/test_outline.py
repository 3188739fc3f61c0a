"""Listings of compiled sections are equal for equal fingerprints."""

from __future__ import annotations

from tests.assurance.diff.test_sections import BASE, section
from tffc.assurance.diff.outline.listing import section_listing
from tffc.language import Compiled
from tffc.language.fingerprint import fingerprint

FUNCTIONS = {"__inference_scale_1": "out = Mul(x, x)"}


def head(made: Compiled) -> str:
    return f"comp#{fingerprint(made)[:8]}: (float32 -> float32)\n"


def test_a_listing() -> None:
    made = section(BASE)
    assert section_listing(made) == head(made) + (
        "  Total(Ramp, argument.0) keep=true\n"
        "  Ramp(Mul)\n"
        "  Mul(argument.0, float32 0.5) T=float32\n"
        "  result: Total\n"
    )


def test_names_and_order_do_not_matter() -> None:
    lines = BASE.replace("relu", "other").replace("mul", "times").strip().splitlines()
    other = section("\n".join(reversed(lines)))
    assert section_listing(other) == section_listing(section(BASE))


def test_what_is_taken_twice_stands_once() -> None:
    made = section("k = Const() value=2\na = Mul(x, k)\nout = Mul(a, k) keep=true")
    assert section_listing(made) == head(made) + (
        "  Mul(Mul.1, Const) keep=true\n"
        "  Mul.1(argument.0, Const)\n"
        "  Const() value=float32 2.0\n"
        "  result: Mul\n"
    )


def test_functions() -> None:
    made = section("out = Apply(x, ^x) f=__inference_scale_1", FUNCTIONS)
    assert section_listing(made) == head(made) + (
        "  Apply(argument.0) f=function #0 after argument.0\n"
        "  result: Apply\n"
        "  function #0:\n"
        "    Mul(argument.0, argument.0)\n"
        "    result: Mul:z:0\n"
    )


def test_long_and_hostile_content() -> None:
    values = ",".join(str(i) for i in range(100))
    made = section(f"k = Const() value={values}\nout = Op(k) mode={'x' * 100} name=\x1b[2J")
    assert section_listing(made) == head(made) + (
        "  Op(float32[100] 0.0 1.0 2.0 3.0 4.0 5.0 ... (be51b026)) "
        f"mode='{'x' * 59}... (100 bytes, 09ecb6eb) name='\\x1b[2J'\n"
        "  result: Op\n"
    )


def test_what_cannot_be_read() -> None:
    made = Compiled("tensorflow", b"\xff", section(BASE).type)
    assert section_listing(made) == head(made) + "  (not readable)\n"
