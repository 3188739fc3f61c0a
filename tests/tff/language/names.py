"""Record the public names of federated_language 0.5.4: run this with the package itself.

python tests/tff/language/names.py > tests/tff/language/recorded/names.json
"""

import json
import types
from typing import Any


def public(module: Any) -> list[str]:
    """Return the names that a module exports, without its modules and its version."""
    names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(module, name), types.ModuleType)]


if __name__ == "__main__":
    import federated_language  # pyright: ignore[reportMissingImports]

    modules: dict[str, Any] = {
        "federated_language": federated_language,
        "federated_language.framework": federated_language.framework,
        "federated_language.program": federated_language.program,
    }
    print(json.dumps({name: public(module) for name, module in modules.items()}, indent=1))
