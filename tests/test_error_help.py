"""Every refusal says what to do: in its help, or in a message that says what was expected.

Where neither does, the code is listed here with the reason; what its page says is left.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

CODE = re.compile(r"E\d{3}")
SAYS = re.compile(r"\b(expected|must|has to|have to|needs|takes)\b")
"""What a message says that tells what should have been there."""

PACKAGE = pathlib.Path(__file__).parents[1] / "tffc"

WITHOUT = {
    "a rule of the language is broken, and the message names the rule and what broke it": (
        "E102 E103 E175 E177 E130 E131 E132 E133 E134 E139 E154 E158 E213 E219 E221 E251 E300"
    ),
    "the function that is called gives the help": (
        "E101 E135 E137 E152 E153 E401 E511 E788 E850 E980 E981 E985"
    ),
    "a pass or a caller built a program that is not sound, which only its author can mend": (
        "E140 E142 E143 E144 E145 E147 E149 E150 E151 E155 E376 E380 E381 E382"
    ),
    "bytes that no user writes are damaged; the message says where": (
        "E203 E204 E205 E206 E207 E208 E209 E210 E211 E214 E215 E216 E217 E218 E220 E222 E223 E224 "
        "E225 E226 E227 E229 E230 E231 E232 E233 E235 E303 E305 E306 E307 E309 E311 E312 E313 E318 "
        "E254 E331 E384 E628 E721"
    ),
    "a text, file or option is shown with the place that is wrong": (
        "E236 E239 E240 E242 E244 E245 E247 E248 E249 E250 E362 E365 E368 E370 E372 E373 E374 E800"
    ),
    "the system, TensorFlow, XLA or the user's own code failed, and its words are given": (
        "E179 E692"
    ),
}


def refusals() -> Iterator[tuple[str, ast.Call]]:
    """Every call that is given a code, with the code."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                for each in (*node.args, *(keyword.value for keyword in node.keywords)):
                    if isinstance(each, ast.Constant) and CODE.fullmatch(str(each.value)):
                        yield str(each.value), node


def says_what_to_do(call: ast.Call) -> bool:
    """Whether a refusal has a help, or a message that says what was expected."""
    is_helped = any(keyword.arg in ("help", None) for keyword in call.keywords)
    return is_helped or SAYS.search(ast.unparse(call)) is not None


def test_every_refusal_says_what_to_do() -> None:
    silent = {code for code, call in refusals() if not says_what_to_do(call)}
    listed = [code for codes in WITHOUT.values() for code in codes.split()]
    assert sorted(silent - set(listed)) == []
    assert sorted(set(listed) - silent) == [], "these say what to do, and are listed"
    assert len(listed) == len(set(listed))
