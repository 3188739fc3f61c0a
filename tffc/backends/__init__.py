"""The forms, how a program becomes one, bundles of them, and what runs them."""

from tffc.backends.compiler import FORMS, compile_form
from tffc.backends.forms import BroadcastForm, DistributeAggregateForm, Form, MapReduceForm

__all__ = [
    "FORMS",
    "BroadcastForm",
    "DistributeAggregateForm",
    "Form",
    "MapReduceForm",
    "compile_form",
]
