"""TFF's names of operators, in a process that has loaded nothing else of TFF's names."""

from __future__ import annotations

import subprocess
import sys


def test_operators_have_the_names_of_tff() -> None:
    code = (
        "from tffc.tff import intrinsic_defs\n"
        "operator = intrinsic_defs.FEDERATED_SUM\n"
        "print(operator.name, operator.type_signature, hasattr(intrinsic_defs, 'FEDERATED_NO'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "FEDERATED_SUM ({T}@CLIENTS -> T@SERVER) False\n"
