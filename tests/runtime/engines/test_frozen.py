"""Rounds with frozen weights give the same in every form and on every engine, whether the weights
are a resource or constants."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frozen_programs import FORMS, constants, in_jax, in_tensorflow, resource, results
from tests.frozen_programs import round_of as frozen_round
from tffc.assurance.proof.prove import Answer, prove
from tffc.language.wire.resources import resources_of

BY_FORM = pytest.mark.parametrize("form", FORMS)
BY_FRAMEWORK = pytest.mark.parametrize("train", [in_tensorflow, in_jax])


@functools.cache
def bundle_of(form: str, train: Any, frozen: Any) -> tff.CompiledBundle:
    return tff.compile(frozen_round(form, train(frozen())), form=form)


@BY_FORM
@BY_FRAMEWORK
def test_rounds_are_those_of_constants(form: str, train: Any) -> None:
    expected = results(bundle_of(form, train, constants))
    for batching in ("off", 3):
        found = results(bundle_of(form, train, resource), batching=batching)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@BY_FORM
@BY_FRAMEWORK
def test_forms_are_proved_and_have_each_array_once(form: str, train: Any) -> None:
    bundle = bundle_of(form, train, resource)
    assert prove(bundle.computation, form, bundle.components).answer is Answer.PROVED
    held = resources_of(bundle.components.values())
    assert sorted(each.size for each in held) == [12, 48]
