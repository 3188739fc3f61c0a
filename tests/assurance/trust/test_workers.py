"""Workers in other processes admit what the driver sends."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tffc as tff
from tests.assurance.trust.conftest import Site
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.deploy.beam import shipment
from tffc.deploy.ray import worker
from tffc.runtime.engines.shipment import bundle_from_bytes, bundle_to_bytes
from tffc.support.errors import TrustError

LOADERS = {
    "ray": lambda content: worker._bundle((content, {})),
    "beam": lambda content: shipment._load_bundle(content),
}


@pytest.fixture
def bundle(site: Site, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    monkeypatch.setenv("TFFC_DEMANDS", str(site.demands))
    return read_bundle(site.bundle)


def test_signatures_go_to_workers(bundle: Bundle) -> None:
    sent = bundle_from_bytes(bundle_to_bytes(bundle))
    assert sent.signatures == bundle.signatures


@pytest.mark.parametrize("engine", LOADERS)
def test_workers_admit(bundle: Bundle, engine: str) -> None:
    loaded, _ = LOADERS[engine](bundle_to_bytes(bundle))
    assert loaded.signatures == bundle.signatures


@pytest.mark.parametrize("engine", LOADERS)
def test_workers_refuse(bundle: Bundle, engine: str) -> None:
    unsigned = dataclasses.replace(bundle, signatures={})
    with pytest.raises(TrustError) as caught:
        LOADERS[engine](bundle_to_bytes(unsigned))
    assert caught.value.code == "E880"
    assert caught.value.notes == ("signature: nobody has signed it",)


@pytest.mark.parametrize("engine", LOADERS)
def test_secure_sums_are_not_masked_at_workers(
    site: Site, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """A policy that `tffc audit` says is passed, of sums that the driver sees in parts."""

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
    def total(state: tff.Value, readings: tff.Value) -> object:
        return state, tff.federated_secure_sum(readings, 100)

    (site.folder / "secure.yaml").write_text("protection: secure\n")
    site.demands.write_text("policy: secure.yaml\n")
    monkeypatch.setenv("TFFC_DEMANDS", str(site.demands))
    bundle = tff.compile(total, "mapreduce")
    tff.trust.admit(bundle, site.demands).check()
    with pytest.raises(TrustError) as caught:
        LOADERS[engine](bundle_to_bytes(bundle))
    assert caught.value.code == "E880"
