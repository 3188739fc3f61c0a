"""The forms, how a program becomes one, bundles of them, and what runs them."""

from tffc.backends.compiler import FORMS, compile_form
from tffc.backends.forms import BroadcastForm, DistributeAggregateForm, Form, MapReduceForm
from tffc.backends.initialize import compile_initialize
from tffc.backends.inverse import computation_of

__all__ = [
    "FORMS",
    "BroadcastForm",
    "DistributeAggregateForm",
    "Form",
    "MapReduceForm",
    "compile_form",
    "compile_initialize",
    "computation_of",
]
