"""Names that TFF's libraries had in older releases."""

from __future__ import annotations

import importlib
import operator
import sys

import pytest

import tffc
from tests.tff.wheel import needs_wheel
from tffc.support.errors import MissingElementError
from tffc.tff.former import GONE, RENAMED

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(?!tests)"),
]

tffc.install_as_tensorflow_federated()


@pytest.mark.parametrize("module", sorted({*RENAMED, *GONE}))
def test_former_names(module: str) -> None:
    loaded = importlib.import_module(module)
    written = f"tff.{module.removeprefix('tensorflow_federated.python.')}"
    for name, today in RENAMED.get(module, {}).items():
        with pytest.warns(DeprecationWarning, match="is now") as caught:
            found = getattr(loaded, name)
        assert found is operator.attrgetter(today)(loaded)
        said = [(str(w.message), w.filename) for w in caught]
        assert (f"{written}.{name} is now {written}.{today}", __file__) in said
    for name, instead in GONE.get(module, {}).items():
        with pytest.raises(MissingElementError) as refused:
            getattr(loaded, name)
        assert (refused.value.code, refused.value.message, refused.value.help) == (
            "E739",
            f"TFF 0.87 has no {written}.{name}, which older releases had",
            instead,
        )
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        _ = loaded.nothing
    assert loaded.__spec__ is not None
    assert loaded.__file__ == sys.modules[module].__spec__.origin  # type: ignore[union-attr]  # modules that are loaded have one
