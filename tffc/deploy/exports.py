"""The table of exports."""

from __future__ import annotations

from tffc.deploy.export.kind import Exporter, ExportKind
from tffc.support.errors import ExportError
from tffc.support.plugins import PluginGroup, PluginTable


def _saved_model() -> Exporter:
    from tffc.deploy.export.saved_model import DEFAULT, export_saved_model

    return Exporter(of_components=export_saved_model, component=DEFAULT)


def _tflite() -> Exporter:
    from tffc.deploy.export.tflite import export_lite_models

    return Exporter(of_components=export_lite_models)


def _keras() -> Exporter:
    from tffc.deploy.export.keras import SUFFIX, export_keras

    return Exporter(of_state=export_keras, suffix=SUFFIX, repeats=False)


def _safetensors() -> Exporter:
    from tffc.deploy.export.safetensors import SUFFIX, export_safetensors

    return Exporter(of_part=export_safetensors, suffix=SUFFIX)


def _flower() -> Exporter:
    from tffc.deploy.flower.app_folder import FILES, export_app

    return Exporter(of_bundle=export_app, own=FILES, holding="an app")


def _nvflare() -> Exporter:
    from tffc.deploy.nvflare.job_folder import FILES, export_job

    return Exporter(of_bundle=export_job, own=FILES, holding="a job")


EXPORTS = PluginTable(
    PluginGroup("tffc.exports", "export", ExportKind, ExportError),
    (
        ExportKind("saved_model", "a SavedModel with a signature for each component", _saved_model),
        ExportKind("tflite", "a LiteRT model for each component", _tflite),
        ExportKind("keras", "a Keras model", _keras),
        ExportKind("safetensors", "the arrays of a trained state as safetensors", _safetensors),
        ExportKind("flower", "a Flower app", _flower),
        ExportKind("nvflare", "an NVFlare job", _nvflare),
    ),
)
"""The exports by name."""
